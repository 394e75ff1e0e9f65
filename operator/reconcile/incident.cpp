#include "operator/reconcile/incident.h"

#include <algorithm>

#include "operator/reconcile/ending.h"
#include "operator/reconcile/failure.h"
#include "operator/reconcile/progress.h"
#include "operator/reconcile/restart_policy.h"
#include "operator/reconcile/text.h"

namespace evenkeel::oper {
namespace {

using contract::RestartAction;

constexpr std::size_t kMaxHandled = 64;  // enough to tell, small enough for 4,096 pods that die together

void remember(Turn& turn, const std::vector<Failure>& failures) {
  std::vector<std::string>& handled = turn.status.restarts.handled;
  for (const Failure& failure : failures) {
    if (!failure.uid.empty()) handled.push_back(failure.uid);
  }
  if (handled.size() > kMaxHandled) handled.erase(handled.begin(), handled.end() - kMaxHandled);
}

std::optional<WallTimeValue> running_since(const JobStatus& status) {
  const auto running = status.conditions.find(kConditionRunning);
  if (running == status.conditions.end() || !running->second.status) return std::nullopt;
  const auto time = base::parse_rfc3339(running->second.last_transition_time);
  return time.ok() ? std::optional(*time) : std::nullopt;
}

void schedule_retry(Turn& turn) {
  Restarts& restarts = turn.status.restarts;
  const auto delay = restart_delay(restarts.total, running_since(turn.status), turn.now);
  restarts.next_retry_time.reset();
  if (delay.count() > 0) restarts.next_retry_time = ceil_second(turn.now + delay);
}

void restart(Turn& turn, const std::vector<Failure>& failures, const Verdict& verdict) {
  const std::string message = describe(failures[verdict.culprit]) + "; " + verdict.because;
  schedule_retry(turn);  // before the counter: the first restart is at once
  ++turn.status.restarts.total;
  if (verdict.action == RestartAction::kRestart) ++turn.status.restarts.counted;
  remember(turn, failures);
  if (turn.report) apply_report(turn.status, *turn.report, turn.children.current, turn.now);
  turn.status.phase = Phase::kRestarting;
  turn.raise_attempt();
  turn.condition(kConditionRestarting, true, "PodsLost", message);
  turn.condition(kConditionRunning, false, "Restarting", message);
  turn.condition(kConditionPodsReady, false, "Terminating", message);
  turn.event(true, "Restarting", "attempt " + std::to_string(turn.status.attempt) + ": " + message);
  turn.because("restart: " + message);
}

// A late status of a pod that is being replaced may show that the restart is in vain: bad data stays bad.
IncidentResult look_back(Turn& turn) {
  if (turn.status.phase != Phase::kRestarting) return IncidentResult::kNone;
  std::vector<Pod> last;
  for (const Pod& pod : turn.children.older) {
    if (pod.attempt == turn.status.attempt - 1 && pod.attempt > 0) last.push_back(pod);
  }
  const std::vector<Failure> failures = failures_before_deletion(last, turn.status.restarts.handled);
  if (failures.empty()) return IncidentResult::kNone;
  const Verdict verdict = judge(turn.job.spec.restart, failures);
  if (verdict.action != RestartAction::kFailJob) return IncidentResult::kNone;
  const Failure& culprit = failures[verdict.culprit];
  turn.status.last_failure = last_failure_json(culprit, turn.now);
  fail(turn, "PermanentFailure", describe(culprit) + "; " + verdict.because);
  return IncidentResult::kEnded;
}

}  // namespace

IncidentResult handle_incident(Turn& turn) {
  const bool were_up =
      is_true(turn.before.conditions, kConditionPodsReady) && turn.before.attempt == turn.status.attempt;
  const std::vector<Failure> failures =
      failures_of(turn.children.current, turn.plan, were_up ? Missing::kGone : Missing::kNotMadeYet,
                  turn.status.restarts.handled);
  if (failures.empty()) return look_back(turn);
  const Verdict verdict = judge(turn.job.spec.restart, failures);
  if (verdict.action == RestartAction::kRestart) {
    if (const auto until = wait_for_cause(failures, turn.children.current, turn.now)) {
      turn.wake.by(*until);
      turn.because("a rank lost its peer: waiting for the cause");
      return IncidentResult::kWaiting;
    }
  }
  const Failure& culprit = failures[verdict.culprit];
  turn.status.last_failure = last_failure_json(culprit, turn.now);
  if (verdict.action == RestartAction::kFailJob) {
    fail(turn, "PermanentFailure", describe(culprit) + "; " + verdict.because);
    return IncidentResult::kEnded;
  }
  const int limit = turn.job.spec.restart.max_restarts;
  if (verdict.action == RestartAction::kRestart && turn.status.restarts.counted >= limit) {
    fail(turn, "MaxRestartsExceeded",
         describe(culprit) + "; restart.maxRestarts = " + std::to_string(limit) + " is used up");
    return IncidentResult::kEnded;
  }
  restart(turn, failures, verdict);
  return IncidentResult::kRestarted;
}

}  // namespace evenkeel::oper
