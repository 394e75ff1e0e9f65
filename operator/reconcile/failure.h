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

enum class Missing { kNotMadeYet, kGone };

// Failures among the pods of the current attempt. `missing` says what it means if a planned pod is not there:
// before all have been seen up together it has not been made yet, afterwards somebody took it away. Pods in
// `handled` have been counted. REQUIRES: the operator itself has deleted no pod of this attempt (it raises
// the attempt first).
std::vector<Failure> failures_of(const std::vector<Pod>& pods, const JobPlan& plan, Missing missing,
                                 const std::vector<std::string>& handled);

// Failures of pods that the operator is deleting: only those that had ended before it asked.
std::vector<Failure> failures_before_deletion(const std::vector<Pod>& pods,
                                              const std::vector<std::string>& handled);

// {"role", "rank", "pod", "node", "attempt", "exitCode", "reason", "message", "time"}
Json last_failure_json(const Failure& failure, WallTimeValue now);
// "pod t-worker-2-1 (rank 2, node n1) exited 65: <words>"
std::string describe(const Failure& failure);

}  // namespace evenkeel::oper
