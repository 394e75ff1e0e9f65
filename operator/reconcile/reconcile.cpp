#include "operator/reconcile/reconcile.h"

#include <algorithm>
#include <exception>

#include "contract/labels.h"
#include "operator/reconcile/create_policy.h"
#include "operator/reconcile/deadline_policy.h"
#include "operator/reconcile/ending.h"
#include "operator/reconcile/incident.h"
#include "operator/reconcile/membership.h"
#include "operator/reconcile/phase_policy.h"
#include "operator/reconcile/pods_ready.h"
#include "operator/reconcile/progress.h"
#include "operator/reconcile/removal.h"
#include "operator/reconcile/retirement.h"
#include "operator/reconcile/suspension.h"
#include "operator/reconcile/turn.h"

namespace evenkeel::oper {
namespace {

constexpr std::chrono::seconds kNameRetry{2};  // nobody tells us when a stranger's object goes
constexpr std::chrono::seconds kShortestRetry{
    1};  // after a refused create: half the time it has lasted, within these
constexpr std::chrono::seconds kLongestRetry{30};
constexpr std::chrono::seconds kAfterBug{60};

Decision hands_off(std::string why) {
  Decision decision;
  decision.reasons.push_back(std::move(why));
  return decision;
}

void begin(Turn& turn) {
  turn.raise_attempt();
  turn.status.phase = Phase::kPending;
  turn.status.start_time = turn.now;
  turn.condition(kConditionAccepted, true, "Valid", "the spec is valid");
  turn.condition(kConditionSuspended, false, "NotSuspended", "spec.suspend is false");
  turn.condition(kConditionRunning, false, "Starting", "not all ranks have joined yet");
  turn.condition(kConditionRestarting, false, "NoIncident", "no incident is open");
  turn.event(false, "Accepted", "the spec is valid; attempt 1 begins");
  turn.because("accepted");
}

// The store knows newer pods than the status does: it was read stale (then the status write is refused and
// this run has no effect), or somebody wiped it (then the job goes on with an attempt that is surely new).
void outrun_newer_pods(Turn& turn) {
  turn.raise_attempt();
  turn.status.phase = Phase::kRestarting;
  turn.condition(kConditionPodsReady, false, kReasonTerminating, "pods of a newer attempt were found");
  turn.because("pods of a newer attempt were found: attempt " + std::to_string(turn.status.attempt));
}

// The barrier between two attempts. True if nothing of another attempt is left.
bool clear_older_pods(Turn& turn) {
  Removal removal = remove_pods(turn.children.older, turn.job.spec.restart.terminating_timeout_seconds,
                                "not of attempt " + std::to_string(turn.status.attempt), turn.now, turn.wake);
  turn.tell_forced(removal.forced);
  // Its name is given to a successor, so it must not resolve any more.
  for (const Pod& pod : removal.passed_by) {
    if (pod.in_dns) turn.request({hide_pod(pod)});
  }
  turn.request(std::move(removal.requests));
  if (removal.all_gone()) return true;
  turn.condition(kConditionPodsReady, false, kReasonTerminating,
                 "waiting until pods of an earlier attempt are gone: " + name_some(removal.blocked_by));
  turn.because("barrier: " + name_some(removal.blocked_by));
  return false;
}

// Says so if pods have to wait for the end of the back-off.
bool is_held_back(Turn& turn) {
  const auto held_back = [](const PodPlan& pod) { return pod.held_back; };
  if (turn.is_retry_due() || (turn.replaces_workers() && std::ranges::none_of(turn.plan.pods, held_back)))
    return false;
  const WallTimeValue next = *turn.status.restarts.next_retry_time;
  turn.wake.by(next);
  turn.condition(
      kConditionPodsReady, false, kReasonBackOff,
      (turn.replaces_workers() ? "the next replacement is made at " : "the next attempt begins at ") +
          base::to_rfc3339(next));
  turn.because("back-off until " + base::to_rfc3339(next));
  return true;
}

// Scope Worker: the book follows what the pods show and what the spec asks for.
void keep_book(Turn& turn) {
  if (!turn.replaces_workers()) return;
  JobStatus& status = turn.status;
  if (!status.pods)
    status.pods =
        guess_book(turn.job.spec.workers.replicas, status.incarnation, turn.job.meta, turn.children.current);
  note_made(*status.pods, turn.plan, turn.children.current);
  note_lost(*status.pods, turn.children.current, turn.report, turn.now);
  const int before = status.pods->wanted;
  const int after = turn.job.spec.workers.replicas;
  if (take_size(*status.pods, after, status.incarnation)) {
    turn.event(false, "Rescaled", std::to_string(before) + " -> " + std::to_string(after) + " workers");
    turn.because("workers.replicas: " + std::to_string(before) + " -> " + std::to_string(after));
  }
  turn.look_at_children();
}

void retry_refused_creates(Turn& turn) {
  if (!turn.observed.name_conflicts.empty()) turn.wake.by(turn.now + kNameRetry);
  if (turn.observed.create_errors.empty()) return;
  const auto ready = turn.before.conditions.find(kConditionPodsReady);
  auto gap = std::chrono::seconds(kShortestRetry);
  if (ready != turn.before.conditions.end()) {
    const auto since = base::parse_rfc3339(ready->second.last_transition_time);
    if (since.ok())
      gap = std::clamp(std::chrono::duration_cast<std::chrono::seconds>((turn.now - *since) / 2), gap,
                       kLongestRetry);
  }
  turn.wake.by(turn.now + gap);
}

void create_missing(Turn& turn) {
  std::vector<Request> missing =
      missing_objects(turn.job, turn.plan, turn.children, turn.observed.secret_made, turn.options);
  if (!missing.empty()) turn.because(std::to_string(missing.size()) + " objects are missing");
  const bool first_try = turn.children.current.empty() && turn.children.retired.empty() &&
                         reason_of(turn.before.conditions, kConditionPodsReady) != kReasonCreating;
  if (first_try && turn.observed.create_errors.empty()) {
    turn.event(
        false, "PodsCreated",
        std::to_string(turn.plan.pods.size()) + " pods of attempt " + std::to_string(turn.plan.attempt));
  }
  turn.request(std::move(missing));
  turn.request(stale_config_maps(turn.plan, turn.children));
  turn.request(repaired_service(turn.job, turn.plan, turn.children));
  retry_refused_creates(turn);
}

void judge_readiness(Turn& turn) {
  if (is_held_back(turn)) return;
  const ConditionText text = judge_pods(turn.plan, turn.children.current, turn.observed, turn.now, turn.wake);
  const std::string known = reason_of(turn.before.conditions, kConditionPodsReady);
  const bool refused = text.reason == kReasonQuota || text.reason == kReasonCreateFailed ||
                       text.reason == kReasonGangIncomplete;
  if (refused && known != text.reason) turn.event(true, text.reason, text.message);
  turn.condition(kConditionPodsReady, text.status, text.reason, text.message);
}

void enter_running(Turn& turn) {
  turn.status.restarts.next_retry_time.reset();
  if (turn.status.pods) turn.status.pods->replaced.clear();
  const bool all = turn.report->joined >= turn.plan.ranks;
  const std::string message = (all ? "all " : std::to_string(turn.report->joined) + " of ") +
                              std::to_string(turn.plan.ranks) + " ranks have joined";
  const std::string reason = all ? "AllRanksJoined" : "EnoughRanksJoined";
  turn.condition(kConditionRestarting, false, reason, "the last incident is over");
  turn.condition(kConditionRunning, true, reason, message);
  turn.event(false, "RendezvousComplete", message);
}

void judge_phase(Turn& turn) {
  const contract::WorkersSpec& workers = turn.job.spec.workers;
  const JobSize size{turn.plan.workers,
                     std::min(workers.min_replicas.value_or(turn.plan.workers), turn.plan.workers),
                     turn.plan.ranks_per_pod};
  const Phase phase = turn.replaces_workers()
                          ? next_phase(turn.status.phase, turn.children.current, turn.report, size)
                          : next_phase(turn.status.phase, turn.children.current, turn.report);
  if (phase == Phase::kRunning && turn.status.phase != Phase::kRunning) enter_running(turn);
  turn.status.phase = phase;
}

void show_progress(Turn& turn) {
  if (!turn.report) return;
  apply_report(turn.status, *turn.report, turn.children.current, turn.now);
  if (turn.job.spec.balance_mode == contract::BalanceMode::kOff) return;
  const bool known = turn.status.conditions.contains(kConditionBalanced);
  const bool balanced = !known || is_true(turn.status.conditions, kConditionBalanced);
  const auto text = judge_balance(*turn.report, turn.job.spec.straggler_threshold, balanced);
  if (!text) return;
  if (!text->status && balanced) turn.event(true, "StragglerDetected", text->message);
  turn.condition(kConditionBalanced, text->status, text->reason, text->message);
}

// An attempt that is under way: what it still needs, and what is to be told of it.
void carry_on(Turn& turn) {
  if (!clear_older_pods(turn)) return;
  if (!turn.replaces_workers() && is_held_back(turn)) return;
  if (turn.replaces_workers()) {
    turn.request(retire_pods(turn));
    turn.request(tell_wanted(turn));
  }
  create_missing(turn);
  judge_readiness(turn);
  judge_phase(turn);
  show_progress(turn);
}

// The story. The order matters: what is over stays over, whatever else is true; success is seen before
// failure, because workers may end oddly after the last step; suspension before failure, because its
// deletions are our own.
void decide(Turn& turn) {
  if (is_terminal(turn.status.phase)) return clean_up(turn);
  if (const Pod* coordinator = finished_coordinator(turn)) {
    succeed(turn, *coordinator);
    return clean_up(turn);
  }
  if (turn.job.spec.suspend) return suspend(turn);
  if (turn.status.phase == Phase::kNone) {
    begin(turn);
  } else if (turn.status.phase == Phase::kSuspended) {
    resume(turn);
  } else if (turn.children.newest_attempt > turn.status.attempt) {
    outrun_newer_pods(turn);
  }
  keep_book(turn);
  const IncidentResult incident = handle_incident(turn);
  if (incident == IncidentResult::kEnded) return clean_up(turn);
  if (const auto deadline = passed_deadline(turn.job.spec, turn.before, turn.status, turn.now, turn.wake)) {
    fail(turn, deadline->reason, deadline->message);
    return clean_up(turn);
  }
  if (incident != IncidentResult::kWaiting) carry_on(turn);
}

}  // namespace

Decision reconcile(const contract::TrainingJob& job, const Observed& observed, WallTimeValue now,
                   const ReconcileOptions& options) {
  if (!job.spec.managed_by.empty() && job.spec.managed_by != contract::kDefaultManagedBy)
    return hands_off("managed by " + job.spec.managed_by);
  if (!job.meta.deletion_timestamp.empty()) return hands_off("being deleted: its children go with it");
  try {
    Turn turn(job, observed, now, options);
    decide(turn);
    return close(turn);
  } catch (const std::exception& bug) {  // a bug here must not take other jobs down
    Decision decision = hands_off(std::string("internal error: ") + bug.what());
    decision.requeue_after = kAfterBug;
    return decision;
  }
}

}  // namespace evenkeel::oper
