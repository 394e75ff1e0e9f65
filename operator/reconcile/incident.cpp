#include "operator/reconcile/incident.h"

#include <algorithm>

#include "operator/reconcile/ending.h"
#include "operator/reconcile/failure.h"
#include "operator/reconcile/membership.h"
#include "operator/reconcile/pods_ready.h"
#include "operator/reconcile/progress.h"
#include "operator/reconcile/restart_policy.h"
#include "operator/reconcile/text.h"

namespace evenkeel::oper {
namespace {

using contract::RestartAction;

// Enough to tell, small enough for 4,096 pods that die together. In scope Worker the book of pods tells them
// apart anyway: a pod that has a successor is asked no more.
constexpr std::size_t kMaxHandled = 64;

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

void count_incident(Turn& turn, const Verdict& verdict) {
  schedule_retry(turn);  // before the counter: the first restart is at once
  ++turn.status.restarts.total;
  if (verdict.action == RestartAction::kRestart) ++turn.status.restarts.counted;
}

void restart(Turn& turn, const std::vector<Failure>& failures, const Verdict& verdict) {
  const std::string message = describe(failures[verdict.culprit]) + "; " + verdict.because;
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

// Scope Worker: the pods that failed get successors of a new incarnation; nobody else is touched.
void replace(Turn& turn, const std::vector<Failure>& failures, const Verdict& verdict, bool opens) {
  const std::string message = describe(failures[verdict.culprit]) + "; " + verdict.because;
  remember(turn, failures);
  if (turn.report) apply_report(turn.status, *turn.report, turn.children.current, turn.now);
  turn.status.phase = Phase::kRestarting;
  std::int64_t& incarnation = turn.status.incarnation;
  for (const Pod& pod : turn.children.current) incarnation = std::max(incarnation, pod.incarnation);
  plan_replacements(*turn.status.pods, failures, incarnation);
  turn.look_at_children();
  const std::string what =
      failures.size() == 1 ? "" : " (and " + std::to_string(failures.size() - 1) + " more)";
  turn.condition(kConditionRestarting, true, "PodsLost", message + what);
  turn.condition(kConditionRunning, false, "Restarting", message + what);
  turn.condition(kConditionPodsReady, false, kReasonCreating, "");
  turn.event(true, opens ? "Restarting" : "RankLost",
             "incarnation " + std::to_string(incarnation) + ": " + message + what);
  turn.because("replace: " + message + what);
}

// An incident lasts until all ranks have joined again. More pods that fail meanwhile belong to it, but a pod
// that was itself made in it is the next one: else a rank that always fails would be replaced for ever.
bool opens_incident(const Turn& turn, const std::vector<Failure>& failures) {
  if (!turn.replaces_workers() || turn.status.phase != Phase::kRestarting) return true;
  return std::ranges::any_of(failures, [&](const Failure& failure) {
    return was_replaced(*turn.status.pods, failure.role, failure.rank);
  });
}

// The coordinator has given the rank up at once, and the others go on; the pod itself gets some time to come
// back.
constexpr int kDetectionTimes = 5;

void add_unheard(Turn& turn, std::vector<Failure>& failures) {
  if (!turn.report) return;
  const std::chrono::seconds patience(kDetectionTimes * turn.job.spec.restart.failure_detection_seconds);
  for (const LostPod& lost : turn.status.pods->lost) {
    const Pod* pod = pod_named(turn.children.current, turn.job.meta.name + "-" + lost.pod);
    const bool known =
        std::ranges::any_of(failures, [&](const Failure& f) { return pod && f.uid == pod->uid; });
    if (pod == nullptr || known) continue;
    if (lost.since + patience <= turn.now) {
      failures.push_back(unheard(*pod, patience.count()));
    } else {
      turn.wake.by(lost.since + patience);
    }
  }
}

std::vector<Failure> find_failures(Turn& turn) {
  std::vector<Failure> failures = failures_of(turn.children.current, turn.plan, turn.status.restarts.handled);
  if (!turn.replaces_workers()) return failures;
  const auto is_coordinator = [](const Failure& f) { return f.role == contract::Role::kCoordinator; };
  const bool over = turn.report && turn.report->stage == contract::JobStage::kCompleted;
  const bool replaced = !over && (was_replaced(*turn.status.pods, contract::Role::kCoordinator, 0) ||
                                  std::ranges::any_of(failures, is_coordinator));
  for (Failure& early : ended_too_early(turn.children.current, replaced, turn.status.restarts.handled))
    failures.push_back(std::move(early));
  add_unheard(turn, failures);
  return failures;
}

// A late status of a pod that is being replaced may show that the restart is in vain: bad data stays bad.
IncidentResult look_back(Turn& turn) {
  if (turn.status.phase != Phase::kRestarting || turn.replaces_workers()) return IncidentResult::kNone;
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
  const bool key_lost = turn.observed.key_lost;
  const std::vector<Failure> failures = key_lost ? std::vector{lost_key(turn.status.attempt)} : find_failures(turn);
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
  const bool opens = opens_incident(turn, failures);
  if (opens && verdict.action == RestartAction::kRestart && turn.status.restarts.counted >= limit) {
    fail(turn, "MaxRestartsExceeded",
         describe(culprit) + "; restart.maxRestarts = " + std::to_string(limit) + " is used up");
    return IncidentResult::kEnded;
  }
  if (opens) count_incident(turn, verdict);
  if (turn.replaces_workers() && !key_lost) {
    replace(turn, failures, verdict, opens);
  } else {
    restart(turn, failures, verdict);
  }
  return IncidentResult::kRestarted;
}

}  // namespace evenkeel::oper
