// Which pods of an attempt failed, and whose fault it was. Called by reconcile; judged by restart_policy.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/reconcile/children.h"

namespace evenkeel::oper {

struct Failure {
  std::string pod, uid, node;
  contract::Role role = contract::Role::kWorker;
  int rank = -1;
  std::int64_t attempt = 0;
  std::optional<int> exit_code;  // only if the program ended by itself
  bool disruption = false;       // eviction, node loss, preemption, somebody's `kubectl delete pod`
  std::string reason, message;
  std::optional<WallTimeValue> time;
};

// Failures among the pods of the plan. One that is not there has not been made yet, or somebody took it away:
// PodPlan::made tells. Pods in `handled` have been counted. REQUIRES: the operator itself has deleted none of
// `pods` (it raises the attempt first, or retires the pod).
std::vector<Failure> failures_of(const std::vector<Pod>& pods, const JobPlan& plan,
                                 const std::vector<std::string>& handled);

// Scope Worker: the coordinator is being replaced, so workers that ended in peace ended too early: the new
// one needs them.
std::vector<Failure> ended_too_early(const std::vector<Pod>& pods, bool coordinator_replaced,
                                     const std::vector<std::string>& handled);

// Scope Worker: a pod that runs and that the coordinator has not heard for `seconds`: it hangs, or no packet
// reaches it. With its node lost as well it is nobody's fault.
Failure unheard(const Pod& pod, std::int64_t seconds);

// All pods of the attempt: their key is no longer the job's. Nobody's fault among them.
Failure lost_key(std::int64_t attempt);

// Failures of pods that the operator is deleting: only those that had ended before it asked.
std::vector<Failure> failures_before_deletion(const std::vector<Pod>& pods,
                                              const std::vector<std::string>& handled);

// {"role", "rank", "pod", "node", "attempt", "exitCode", "reason", "message", "time"}
Json last_failure_json(const Failure& failure, WallTimeValue now);
// "pod t-worker-2-1 (rank 2, node n1) exited 65: <words>"; of no pod in particular: "KeyLost: <words>"
std::string describe(const Failure& failure);

}  // namespace evenkeel::oper
