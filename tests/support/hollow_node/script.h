// What happens to pods that no kubelet runs: rules choose a behaviour for each pod, and a pure function says the next
// thing to do with it. Values only; used by node.cpp.
//
//   {"startMs": 5, "rules": [{"role": "worker", "rank": 3, "once": true, "do": "exit", "exitCode": 65, "afterMs": 100}]}
//
// The first rule that fits a pod counts; without any it runs for ever.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace evenkeel::support {

enum class Fate {
  kRun,             // for ever
  kExit,            // with exit_code, after_ms after its start; 0 = success
  kNeverReady,      // runs, but no probe succeeds
  kNeverScheduled,  // stays Pending
  kEvicted,         // after_ms after its start: DisruptionTarget, Failed
  kNodeLost,        // after_ms after its start: not ready, marked by the taint manager, deleted, and never gone by itself
};

struct Behaviour {
  Fate fate = Fate::kRun;
  std::int64_t after_ms = 0;
  int exit_code = 0;
  std::string message;  // of the termination
  bool operator==(const Behaviour&) const = default;
};

struct HollowRule {
  std::string name_space;  // empty or nothing: any
  std::string job;
  std::string role;
  std::optional<std::int64_t> rank, attempt, incarnation;
  bool once = false;  // for the first pod of each job that it fits
  Behaviour behaviour;
};

struct HollowScript {
  std::int64_t start_ms = 0;      // from the first sight of a pod to Running
  std::int64_t terminate_ms = 0;  // from the deletion to the end
  bool bind = false;              // to a node, so that a deletion is a request; unbound pods are gone at once
  std::string pod_ip;             // of all pods; empty: each has its own
  std::vector<HollowRule> rules;
};

// Unknown members and values are errors that name them.
base::Result<HollowScript> parse_script(const base::Json& json);

struct PodFacts {
  std::string uid, name, name_space;
  std::string job, job_uid, role;
  std::int64_t rank = 0, attempt = 0, incarnation = 0;
  std::string phase;
  bool bound = false;
  bool deleting = false;
  bool disrupted = false;  // DisruptionTarget is true
};
PodFacts facts_of_pod(const base::Json& pod);

// How often a rule was given to a pod, by rule and job UID.
using RuleUses = std::map<std::pair<std::size_t, std::string>, std::uint64_t>;
// The rule for a pod seen for the first time; nothing: it runs for ever.
std::optional<std::size_t> choose_rule(const HollowScript& script, const PodFacts& pod, const RuleUses& uses);

struct PodMoment {
  std::int64_t seen_ms = 0;      // since the first sight
  std::int64_t running_ms = 0;   // since Running was seen
  std::int64_t deleting_ms = 0;  // since the deletion was seen
  std::string now;               // wall time, for the status
  std::string ip;
};

enum class Step { kNothing, kWait, kBind, kPatchStatus, kDelete, kRemove };
struct Decision {
  Step step = Step::kNothing;  // until the pod changes
  std::int64_t wait_ms = 0;
  base::Json status;  // a merge patch of `status`
};
Decision decide(const PodFacts& pod, const Behaviour& behaviour, const HollowScript& script, const PodMoment& moment);

// The n-th address of 10.0.0.0/8.
std::string pod_ip(std::uint64_t n);

}  // namespace evenkeel::support
