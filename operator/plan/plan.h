// Station 3: what one attempt of a job consists of: which pods, under which names and addresses, with which
// configuration. Made by operator/reconcile (and tests), read by operator/render. A value; pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "contract/job/names.h"
#include "contract/job/spec.h"
#include "contract/trainer_config.h"

namespace evenkeel::oper {

// One pod that the attempt needs. `rank` is the pod's place among its role: the NODE_RANK of a worker.
struct PodPlan {
  contract::Role role = contract::Role::kWorker;
  int rank = 0;
  std::int64_t incarnation = 0;
  std::string name;        // <job>-<role>-<rank>-<incarnation>
  std::string host_name;   // <job>-<role>-<rank>: the same in every attempt
  std::string address;     // <hostname>.<service>.<namespace>.svc
  bool made = false;       // it has been seen once: if it is not there now, somebody took it away
  bool held_back = false;  // it is a replacement, and the back-off is not over
};

struct JobPlan {
  std::int64_t attempt = 0;
  std::int64_t incarnation = 0;  // of the coordinator
  int workers = 0;               // pods
  int ranks = 0;
  int ranks_per_pod = 1;
  std::string service;
  std::string config_map;
  std::string wanted_map;  // empty: the size is fixed
  std::string secret;
  contract::TrainerConfig config;
  std::vector<PodPlan> pods;  // the coordinator first: it is what the workers wait for
};

// An attempt of the size that the spec asks for; all its pods share the incarnation that was persisted before
// the first of them is made. REQUIRES: attempt >= 1, incarnation >= 1, a valid job.
JobPlan make_plan(const contract::TrainingJob& job, std::int64_t attempt, std::int64_t incarnation);
// An attempt of just these pods, the coordinator first (scope Worker: each rank has an incarnation of its
// own).
JobPlan make_plan(const contract::TrainingJob& job, std::int64_t attempt, std::vector<PodPlan> pods);
PodPlan plan_pod(const contract::ObjectMeta& job, contract::Role role, int rank, std::int64_t incarnation);

// The plan for people and logs, one line a pod.
std::string to_text(const JobPlan& plan);

// The workers of a plan, by rank.
std::vector<PodPlan> workers_of(const JobPlan& plan);

}  // namespace evenkeel::oper
