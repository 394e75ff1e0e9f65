// An incident: pods of the attempt failed or went away. It leads to one restart (of all pods, or in scope
// Worker of those that failed), to the end of the job, or to a short wait for the pod that is the cause.
// Called by reconcile. Pure.
#pragma once

#include "operator/reconcile/turn.h"

namespace evenkeel::oper {

enum class IncidentResult {
  kNone,       // all is well
  kWaiting,    // some lost a peer; the peer is not known yet
  kRestarted,  // counters are raised, and the attempt or (scope Worker) the incarnation; old pods have to go
  kEnded,      // the job has failed
};

IncidentResult handle_incident(Turn& turn);

}  // namespace evenkeel::oper
