#include "operator/reconcile/worker_counts.h"

#include <algorithm>

namespace evenkeel::oper {
namespace {

void count_pod(WorkerCounts& counts, const Pod& pod) {
  if (pod.role != contract::Role::kWorker) return;
  if (pod.deleting()) {
    ++counts.terminating;
    return;
  }
  switch (pod.phase) {
    case PodPhase::kPending:
      ++counts.pending;
      break;
    case PodPhase::kRunning:
      ++counts.running;
      break;
    case PodPhase::kSucceeded:
      ++counts.succeeded;
      break;
    case PodPhase::kFailed:
      ++counts.failed;
      break;
  }
  if (pod.ready) ++counts.ready;
}

}  // namespace

WorkerCounts count_workers(const JobStatus& status, const Children& children, int replicas) {
  WorkerCounts counts;
  const bool over = is_terminal(status.phase);
  counts.replicas = replicas;
  counts.desired = over || status.phase == Phase::kSuspended ? 0 : replicas;
  for (const Pod& pod : children.current) count_pod(counts, pod);
  for (const std::vector<Pod>* others : {&children.retired, &children.older}) {
    for (const Pod& pod : *others) {
      if (pod.role == contract::Role::kWorker && pod.deleting()) ++counts.terminating;
    }
  }
  if (over && status.workers) {
    counts.succeeded = std::max(counts.succeeded, status.workers->succeeded);
    counts.failed = std::max(counts.failed, status.workers->failed);
  }
  return counts;
}

}  // namespace evenkeel::oper
