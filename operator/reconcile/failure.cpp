#include "operator/reconcile/failure.h"

#include <algorithm>
#include <set>

#include "contract/report.h"
#include "operator/reconcile/text.h"

namespace evenkeel::oper {
namespace {

constexpr std::size_t kReasonBytes = 64;
constexpr std::size_t kMessageBytes = 512;

bool is_handled(const std::string& uid, const std::vector<std::string>& handled) {
  return std::find(handled.begin(), handled.end(), uid) != handled.end();
}

// A pod that was deleted while it ran ends with whatever code the signal left; that code means nothing.
bool ended_by_itself(const Pod& pod) {
  if (!pod.deleting()) return true;
  return pod.finished_time && *pod.finished_time <= *pod.deletion_asked();
}

Failure failure_of(const Pod& pod) {
  Failure failure{pod.name,     pod.uid,       pod.node,   pod.role, pod.rank,         pod.attempt,
                  std::nullopt, pod.disrupted, pod.reason, "",       pod.finished_time};
  if (pod.phase == PodPhase::kFailed && ended_by_itself(pod)) {
    failure.exit_code = pod.exit_code;
    failure.message = contract::parse_worker_termination(pod.termination_message).reason;
    if (failure.message.empty()) failure.message = pod.message;
  } else {
    failure.disruption = true;
    failure.time = pod.deletion_asked();
    if (failure.reason.empty() || !pod.disrupted) failure.reason = "Deleted";
    failure.message = pod.message.empty() ? "the pod was deleted" : pod.message;
  }
  if (failure.reason.empty()) failure.reason = "Error";
  return failure;
}

Failure gone(const PodPlan& pod, std::int64_t attempt) {
  Failure failure;
  failure.pod = pod.name;
  failure.role = pod.role;
  failure.rank = pod.rank;
  failure.attempt = attempt;
  failure.disruption = true;
  failure.reason = "Gone";
  failure.message = "the pod is not there any more";
  return failure;
}

}  // namespace

std::vector<Failure> failures_of(const std::vector<Pod>& pods, const JobPlan& plan,
                                 const std::vector<std::string>& handled) {
  std::vector<Failure> failures;
  for (const Pod& pod : pods) {
    const bool taken_away = pod.deleting() && pod.phase != PodPhase::kSucceeded;
    const bool failed = pod.phase == PodPhase::kFailed || taken_away;
    if (failed && !is_handled(pod.uid, handled)) failures.push_back(failure_of(pod));
  }
  std::set<std::string> there;
  for (const Pod& pod : pods) there.insert(pod.name);
  for (const PodPlan& planned : plan.pods) {
    if (planned.made && !there.contains(planned.name)) failures.push_back(gone(planned, plan.attempt));
  }
  return failures;
}

std::vector<Failure> ended_too_early(const std::vector<Pod>& pods, bool coordinator_replaced,
                                     const std::vector<std::string>& handled) {
  std::vector<Failure> failures;
  for (const Pod& pod : pods) {
    const bool in_peace = pod.role == contract::Role::kWorker && pod.phase == PodPhase::kSucceeded;
    if (!coordinator_replaced || !in_peace || is_handled(pod.uid, handled)) continue;
    Failure failure = failure_of(pod);
    failure.disruption = true;
    failure.reason = "EndedEarly";
    failure.message = "it had ended when its coordinator was lost";
    failures.push_back(std::move(failure));
  }
  return failures;
}

Failure unheard(const Pod& pod, std::int64_t seconds) {
  // No pod of ours has a readiness probe: one that runs and is not ready lies on a node that answers nobody.
  const bool node_silent = !pod.ready;
  Failure failure{pod.name, pod.uid, pod.node,    pod.role, pod.rank, pod.attempt,
                  {},       node_silent, "Unheard", "",       {}};
  failure.message = "the coordinator has not heard it for " + std::to_string(seconds) + " s" +
                    (node_silent ? ", nor has the cluster heard its node" : "");
  return failure;
}

Failure lost_key(std::int64_t attempt) {
  Failure failure;
  failure.role = contract::Role::kCoordinator;
  failure.rank = 0;
  failure.attempt = attempt;
  failure.disruption = true;
  failure.reason = "KeyLost";
  failure.message = "the Secret with the job's key was deleted; with a new one all pods begin anew";
  return failure;
}

std::vector<Failure> failures_before_deletion(const std::vector<Pod>& pods,
                                              const std::vector<std::string>& handled) {
  std::vector<Failure> failures;
  for (const Pod& pod : pods) {
    const bool own_end = pod.phase == PodPhase::kFailed && pod.exit_code && ended_by_itself(pod);
    if (own_end && !is_handled(pod.uid, handled)) failures.push_back(failure_of(pod));
  }
  return failures;
}

Json last_failure_json(const Failure& failure, WallTimeValue now) {
  Json json = {{"role", contract::role_name(failure.role)}, {"rank", failure.rank}};
  if (!failure.pod.empty()) json["pod"] = failure.pod;
  if (!failure.node.empty()) json["node"] = failure.node;
  json["attempt"] = failure.attempt;
  if (failure.exit_code) json["exitCode"] = *failure.exit_code;
  json["reason"] = fit_text(failure.reason, kReasonBytes);
  if (!failure.message.empty()) json["message"] = fit_text(failure.message, kMessageBytes);
  json["time"] = base::to_rfc3339(failure.time.value_or(now));
  return json;
}

std::string describe(const Failure& failure) {
  if (failure.pod.empty()) return failure.reason + ": " + failure.message;
  std::string text = "pod " + failure.pod + " (";
  text += failure.role == contract::Role::kWorker ? "rank " + std::to_string(failure.rank)
                                                  : contract::role_name(failure.role);
  if (!failure.node.empty()) text += ", node " + failure.node;
  text +=
      failure.exit_code ? ") exited " + std::to_string(*failure.exit_code) : ") was lost, " + failure.reason;
  return failure.message.empty() ? text : text + ": " + fit_text(failure.message, kMessageBytes);
}

}  // namespace evenkeel::oper
