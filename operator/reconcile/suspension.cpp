#include "operator/reconcile/suspension.h"

#include "operator/reconcile/pods_ready.h"
#include "operator/reconcile/progress.h"
#include "operator/reconcile/removal.h"

namespace evenkeel::oper {
namespace {

void enter(Turn& turn) {
  if (turn.report) apply_report(turn.status, *turn.report, turn.children.current, turn.now);
  for (const char* member : {"eta", "estimatedCompletionTime"}) {
    if (turn.status.progress.is_object()) turn.status.progress.erase(member);
  }
  turn.status.phase = Phase::kSuspended;
  turn.status.pods.reset();
  turn.status.restarts.next_retry_time.reset();
  turn.condition(kConditionAccepted, true, "Valid", "the spec is valid");
  turn.condition(kConditionRunning, false, "Suspended", "spec.suspend is true");
  turn.condition(kConditionRestarting, false, "Suspended", "spec.suspend is true");
  turn.condition(kConditionPodsReady, false, "Suspended", "spec.suspend is true");
  turn.event(false, "Suspended", "spec.suspend is true: the pods are deleted");
}

}  // namespace

void suspend(Turn& turn) {
  if (!turn.status.start_time) turn.status.start_time = turn.now;
  if (turn.status.phase != Phase::kSuspended) enter(turn);
  Removal removal = remove_pods(turn.children.all_pods(), turn.job.spec.restart.terminating_timeout_seconds,
                                "suspended", turn.now, turn.wake);
  // The names stay until the last pod has gone: the ranks may still be writing a checkpoint together.
  if (removal.all_gone()) {
    for (const Json& object : turn.children.services)
      turn.request({delete_object("Service", object, "suspended")});
    for (const Json& object : turn.children.config_maps)
      turn.request({delete_object("ConfigMap", object, "suspended")});
    turn.condition(kConditionSuspended, true, "Suspended", "no pods are left");
  } else {
    turn.condition(kConditionSuspended, false, "Stopping", "waiting for " + name_some(removal.blocked_by));
  }
  turn.tell_forced(removal.forced);
  turn.request(std::move(removal.requests));
  turn.because("spec.suspend is true");
}

void resume(Turn& turn) {
  turn.raise_attempt();
  turn.status.phase = Phase::kPending;
  turn.condition(kConditionSuspended, false, "Resumed", "attempt " + std::to_string(turn.status.attempt));
  turn.condition(kConditionRunning, false, "Starting", "not all ranks have joined yet");
  turn.condition(kConditionPodsReady, false, kReasonCreating, "");
  turn.event(false, "Resumed", "attempt " + std::to_string(turn.status.attempt));
  turn.because("resumed");
}

}  // namespace evenkeel::oper
