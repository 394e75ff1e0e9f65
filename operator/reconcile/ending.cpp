#include "operator/reconcile/ending.h"

#include "operator/reconcile/progress.h"
#include "operator/reconcile/removal.h"

namespace evenkeel::oper {
namespace {

using contract::PodCleanPolicy;

// Workers end by themselves right after their coordinator; deleting them at once would lose their last lines.
constexpr std::chrono::seconds kWorkersEnd{10};

bool succeeded(const Pod& pod) {
  return pod.phase == PodPhase::kSucceeded && pod.exit_code.value_or(0) == 0;
}

void end(Turn& turn, Phase phase, const std::string& reason, const std::string& message) {
  turn.status.phase = phase;
  turn.status.completion_time = turn.now;
  turn.status.restarts.next_retry_time.reset();
  turn.condition(kConditionRunning, false, reason, message);
  turn.condition(kConditionRestarting, false, reason, message);
  turn.condition(kConditionSuspended, false, reason, message);
  turn.condition(kConditionPodsReady, false, "Finished", message);
  if (turn.report) apply_report(turn.status, *turn.report, turn.children.current, turn.now);
  for (const char* member : {"eta", "estimatedCompletionTime"}) {
    if (turn.status.progress.is_object()) turn.status.progress.erase(member);
  }
}

std::vector<Pod> pods_to_remove(Turn& turn) {
  if (turn.job.spec.pod_policy == PodCleanPolicy::kNone) return {};
  if (turn.job.spec.pod_policy == PodCleanPolicy::kAll) return turn.children.all_pods();
  std::vector<Pod> running;
  for (const Pod& pod : turn.children.all_pods()) {
    if (!pod.finished()) running.push_back(pod);
  }
  return running;
}

// After success, pods may end by themselves first.
bool is_too_early(Turn& turn) {
  if (turn.status.phase != Phase::kSucceeded || !turn.status.completion_time) return false;
  const WallTimeValue until =
      *turn.status.completion_time + kWorkersEnd + std::chrono::seconds(turn.job.spec.metrics_linger_seconds);
  if (until <= turn.now) return false;
  turn.wake.by(until);
  return true;
}

void remove_objects(Turn& turn) {
  for (const Json& object : turn.children.services)
    turn.request({delete_object("Service", object, "podPolicy All")});
  for (const Json& object : turn.children.config_maps)
    turn.request({delete_object("ConfigMap", object, "podPolicy All")});
}

void remove_job(Turn& turn) {
  if (!turn.job.spec.ttl_seconds_after_finished || !turn.status.completion_time) return;
  const WallTimeValue due =
      *turn.status.completion_time + std::chrono::seconds(*turn.job.spec.ttl_seconds_after_finished);
  if (due > turn.now) {
    turn.wake.by(due);
    return;
  }
  Request request;
  request.verb = Verb::kDelete;
  request.kind = "TrainingJob";
  request.name = turn.job.meta.name;
  request.uid = turn.job.meta.uid;
  request.reason = "ttlSecondsAfterFinished = " + std::to_string(*turn.job.spec.ttl_seconds_after_finished);
  turn.request({request});
}

std::string success_message(const Turn& turn) {
  const Json& progress = turn.status.progress;
  if (!progress.is_object() || !progress.contains("step")) return "the coordinator ended with exit code 0";
  return "trained " + std::to_string(base::int_at(progress, "step")) + " steps, " +
         std::to_string(base::int_at(progress, "samples")) + " samples";
}

}  // namespace

const Pod* finished_coordinator(const Turn& turn) {
  const Pod* own = turn.coordinator();
  if (own != nullptr && succeeded(*own)) return own;
  // Scope Worker: one that was being replaced may have come to the end all the same.
  for (const Pod& pod : turn.children.retired) {
    if (pod.role == contract::Role::kCoordinator && succeeded(pod)) return &pod;
  }
  if (turn.status.phase != Phase::kRestarting) return nullptr;
  for (const Pod& pod : turn.children.older) {
    const bool last =
        pod.role == contract::Role::kCoordinator && pod.attempt == turn.status.attempt - 1 && pod.attempt > 0;
    if (last && succeeded(pod)) return &pod;
  }
  return nullptr;
}

void succeed(Turn& turn, const Pod& coordinator) {
  if (auto words = last_words(coordinator, turn.job.meta.uid)) turn.report = std::move(words);
  if (turn.report) apply_report(turn.status, *turn.report, turn.children.current, turn.now);
  const std::string message = success_message(turn);
  end(turn, Phase::kSucceeded, "Completed", message);
  turn.condition(kConditionComplete, true, "Completed", message);
  turn.event(false, "Completed", message);
  turn.because("pod " + coordinator.name + " ended with exit code 0");
}

void fail(Turn& turn, const std::string& reason, const std::string& message) {
  end(turn, Phase::kFailed, reason, message);
  turn.condition(kConditionFailed, true, reason, message);
  turn.event(true, "Failed", message);
  turn.because("failed: " + message);
}

void clean_up(Turn& turn) {
  if (!is_too_early(turn)) {
    Removal removal = remove_pods(pods_to_remove(turn), turn.job.spec.restart.terminating_timeout_seconds,
                                  "the job is over", turn.now, turn.wake);
    const bool all = turn.job.spec.pod_policy == PodCleanPolicy::kAll;
    if (all && removal.all_gone()) remove_objects(turn);
    turn.tell_forced(removal.forced);
    turn.request(std::move(removal.requests));
  }
  remove_job(turn);
}

}  // namespace evenkeel::oper
