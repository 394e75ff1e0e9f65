// The job's pods as reconcile sees them: read once through a tolerant decoder, sorted into buckets by
// attempt. A pod that is not controlled by this job's UID is not there. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/time_text.h"
#include "contract/job/names.h"
#include "contract/job/spec.h"
#include "operator/plan/plan.h"

namespace evenkeel::oper {

using base::Json;
using base::WallTimeValue;

enum class PodPhase { kPending, kRunning, kSucceeded, kFailed };

struct Pod {
  std::string name, uid, node;
  contract::Role role = contract::Role::kWorker;
  int rank = -1;
  std::int64_t attempt = 0;  // 0: the label is missing or not a number
  std::int64_t incarnation = 0;
  PodPhase phase = PodPhase::kPending;
  bool ready = false;
  bool in_dns = false;      // carries the label of those that peers resolve
  std::string wanted_hint;  // kAnnotationWanted
  bool disrupted =
      false;  // the cluster took it away: DisruptionTarget, Evicted, node shutdown, never admitted
  bool node_lost = false;
  std::optional<WallTimeValue> deletion_time;  // when its grace is over
  std::int64_t deletion_grace_seconds = 0;
  std::optional<WallTimeValue> finished_time;  // of the trainer's container
  std::optional<int> exit_code;
  std::string termination_message;
  std::string reason, message;  // of the pod's own status
  Json waiting;                 // {"reason", "message"} of the container, or an empty object
  Json scheduled;               // the PodScheduled condition, or an empty object

  bool deleting() const { return deletion_time.has_value(); }
  bool finished() const { return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed; }
  bool runs() const { return phase == PodPhase::kRunning && !deleting(); }
  // When somebody asked for the deletion.
  std::optional<WallTimeValue> deletion_asked() const;
};

// Each sorted by role, rank and incarnation.
struct Children {
  std::vector<Pod> current;  // of status.attempt
  std::vector<Pod> retired;  // of status.attempt too, but replaced or no longer wanted (membership.h)
  std::vector<Pod> older;    // of other attempts, and those whose labels cannot be read
  std::int64_t newest_attempt = 0;
  std::vector<Json> services, config_maps;

  std::vector<Pod> all_pods() const;
};

Pod read_pod(const Json& object);
Children sort_children(const contract::ObjectMeta& job, const std::vector<Json>& pods,
                       const std::vector<Json>& services, const std::vector<Json>& config_maps,
                       std::int64_t attempt);

// Scope Job: a pod of this attempt that the plan does not name (a label was edited, an older incarnation) is
// a stray: it goes the way of the older ones. Role and rank of the others come from the plan, so no label can
// change them.
void keep_planned(Children& children, const JobPlan& plan);

const Pod* pod_named(const std::vector<Pod>& pods, const std::string& name);

}  // namespace evenkeel::oper
