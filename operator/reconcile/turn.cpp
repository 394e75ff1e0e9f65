#include "operator/reconcile/turn.h"

#include <algorithm>
#include <iterator>

#include "operator/reconcile/membership.h"
#include "operator/reconcile/phase_policy.h"
#include "operator/reconcile/progress.h"
#include "operator/reconcile/text.h"
#include "operator/reconcile/time_accounting.h"
#include "operator/reconcile/worker_counts.h"
#include "operator/render/metadata.h"

namespace evenkeel::oper {
namespace {

// Members that only tell how the training goes: worth writing, but not at once.
Json without_progress(Json status) {
  for (const char* member : {"progress", "time", "balance", "diagnosis", "replicas"}) status.erase(member);
  return status;
}

void note_name_conflicts(Turn& turn) {
  const auto& conflicts = turn.observed.name_conflicts;
  if (conflicts.empty()) {
    if (turn.status.conditions.contains(kConditionNameConflict))
      turn.condition(kConditionNameConflict, false, "Resolved", "all names are ours");
    return;
  }
  const auto& [what, who] = *conflicts.begin();
  const std::string message = what + " is taken: " + who + "; it goes on when the name is free";
  if (!is_true(turn.status.conditions, kConditionNameConflict)) turn.event(true, "NameConflict", message);
  turn.condition(kConditionNameConflict, true, "NameTaken", message);
}

}  // namespace

Turn::Turn(const contract::TrainingJob& job_in, const Observed& observed_in, WallTimeValue now_in,
           const ReconcileOptions& options_in)
    : job(job_in),
      observed(observed_in),
      now(now_in),
      options(options_in),
      before(decode_status(job_in.status_json)),
      status(before) {
  look_at_children();
}

void Turn::look_at_children() {
  children = sort_children(job.meta, observed.pods, observed.services, observed.config_maps, status.attempt);
  report = report_of_attempt(observed.report, job.meta.uid, status.attempt);
  if (status.attempt == 0) return;
  if (replaces_workers()) {
    look_at_members();
  } else {
    look_at_attempt();
  }
  if (coordinator() == nullptr) return;
  if (auto last = last_words(*coordinator(), job.meta.uid)) report = std::move(last);
}

// All pods of the attempt are made, and go, together.
void Turn::look_at_attempt() {
  plan = make_plan(job, status.attempt, std::max<std::int64_t>(1, status.incarnation));
  const bool were_up = is_true(before.conditions, kConditionPodsReady) && before.attempt == status.attempt;
  for (PodPlan& pod : plan.pods) pod.made = were_up;
  keep_planned(children, plan);
}

void Turn::look_at_members() {
  const std::int64_t newest = std::max<std::int64_t>(1, status.incarnation);
  const PodBook book =
      status.pods ? *status.pods : guess_book(job.spec.workers.replicas, newest, job.meta, children.current);
  plan = make_plan(job, status.attempt, members(job.meta, book, status.restarts.handled, children.current));
  for (PodPlan& pod : plan.pods) {
    const auto entry = contract::identity_text({pod.role, pod.rank, pod.incarnation});
    pod.held_back = !is_retry_due() && std::ranges::find(book.replacing, entry) != book.replacing.end();
  }
  retire_others(children, job.meta, plan, status.restarts.handled);
  // What a coordinator that is gone has said tells nothing of the members of today.
  if (report && report->coordinator_incarnation != plan.pods.front().incarnation) report.reset();
}

bool Turn::replaces_workers() const {
  return oper::replaces_workers(job);
}

bool Turn::is_retry_due() const {
  return !status.restarts.next_retry_time || *status.restarts.next_retry_time <= now;
}

void Turn::raise_attempt() {
  status.attempt = std::max(status.attempt, children.newest_attempt) + 1;
  ++status.incarnation;
  status.pods.reset();
  if (replaces_workers()) status.pods = open_book(job.spec.workers.replicas, status.incarnation);
  look_at_children();
}

void Turn::condition(const char* type, bool is_true, const std::string& reason, const std::string& message) {
  set_condition(status.conditions, type, {is_true, reason, message}, job.meta.generation, now);
}

void Turn::event(bool warning, const std::string& reason, const std::string& message) {
  decision.events.push_back({warning, reason, fit_text(message)});
}

void Turn::tell_forced(const std::vector<std::string>& pods) {
  for (const std::string& pod : pods) event(true, "RankLost", "pod " + pod + " does not end: deleted by force");
}

void Turn::request(std::vector<Request> more) {
  std::move(more.begin(), more.end(), std::back_inserter(decision.requests));
}

const Pod* Turn::coordinator() const {
  return plan.pods.empty() ? nullptr : pod_named(children.current, plan.pods.front().name);
}

std::optional<contract::JobReport> last_words(const Pod& coordinator, const std::string& job_uid) {
  if (coordinator.role != contract::Role::kCoordinator || coordinator.termination_message.empty())
    return std::nullopt;
  const auto json = base::parse_json(coordinator.termination_message, {contract::kMaxReportBytes, 16});
  if (!json.ok()) return std::nullopt;
  auto report = contract::decode_report(*json);
  if (!report.ok()) return std::nullopt;
  return report_of_attempt(std::move(report).value(), job_uid, coordinator.attempt);
}

Decision close(Turn& turn) {
  turn.status.observed_generation = std::max(turn.before.observed_generation, turn.job.meta.generation);
  turn.status.selector = worker_selector(turn.job.meta.uid);
  turn.status.workers = count_workers(turn.status, turn.children, turn.job.spec.workers.replicas);
  if (!is_terminal(turn.status.phase)) note_name_conflicts(turn);
  for (auto& [type, condition] : turn.status.conditions)
    condition.observed_generation = turn.status.observed_generation;
  const Json stored = to_json(turn.before);
  if (!same_json(stored, to_json(turn.status))) {
    turn.status.time = book_time(turn.before, turn.report, turn.now);
    for (const EventNote& note : remedy_events(turn.before.diagnosis, turn.status.diagnosis))
      turn.event(note.warning, note.reason, note.message);
    Json next = to_json(turn.status);
    turn.decision.status_is_urgent = !same_json(without_progress(stored), without_progress(next));
    turn.decision.status = std::move(next);
  }
  if (const auto at = turn.wake.at())
    turn.decision.requeue_after =
        std::max<std::chrono::nanoseconds>(std::chrono::milliseconds(10), *at - turn.now);
  return std::move(turn.decision);
}

}  // namespace evenkeel::oper
