// Scope Worker: pods of the attempt that hold no rank any more. Their address leaves DNS before a successor
// is made, then they go; nobody waits for them, for a pod on a lost node may stay Terminating for ever. A
// worker that is no longer wanted first leaves the membership: the coordinator says when. Called by
// reconcile. Pure.
#pragma once

#include <vector>

#include "operator/reconcile/turn.h"

namespace evenkeel::oper {

// Labels first, then deletions.
std::vector<Request> retire_pods(Turn& turn);

// Brings the wanted number to the coordinator: its file, and a nudge for the kubelet that mounts it.
std::vector<Request> tell_wanted(const Turn& turn);

}  // namespace evenkeel::oper
