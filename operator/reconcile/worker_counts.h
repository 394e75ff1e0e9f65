// status.workers: worker pods by state. Called by reconcile. Pure.
#pragma once

#include "operator/reconcile/children.h"
#include "operator/reconcile/status.h"

namespace evenkeel::oper {

// `older` pods count as terminating only. Once the job is over, what has succeeded or failed stays counted
// although the pods go away.
WorkerCounts count_workers(const JobStatus& status, const Children& children, int replicas);

}  // namespace evenkeel::oper
