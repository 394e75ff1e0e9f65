// Taking pods away: the barrier between two attempts, suspension, clean-up. A pod is deleted by UID, and
// once; one that does not go is forced only if the job says so. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/reconcile/children.h"
#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/wake.h"

namespace evenkeel::oper {

struct Removal {
  std::vector<Request> requests;
  std::vector<std::string> blocked_by;  // pods that are still there: "t-worker-2-1 on node n1"
  std::vector<std::string> forced;      // those that are deleted by force now
  std::vector<Pod> passed_by;           // on a lost node, their grace over: nobody waits for them
  bool all_gone() const { return blocked_by.empty(); }
};

// Removes all of `pods`. A pod on a lost node whose grace is over does not block: nobody will ever confirm
// its end.
Removal remove_pods(const std::vector<Pod>& pods, int terminating_timeout_seconds, const std::string& reason,
                    WallTimeValue now, Wake& wake);

// Takes the pod's address out of DNS: by the label that the Service selects.
Request hide_pod(const Pod& pod);

Request delete_object(const std::string& kind, const Json& object, const std::string& reason);

}  // namespace evenkeel::oper
