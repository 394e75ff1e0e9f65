#include "operator/reconcile/pods_ready.h"

#include <algorithm>

#include "operator/reconcile/status.h"

namespace evenkeel::oper {
namespace {

constexpr std::chrono::seconds kGangPatience{120};  // some run, one finds no node for this long: say so

// Why one pod does not run. An empty reason: it does, or did.
struct Trouble {
  std::string reason;
  std::string words;
};

bool one_of(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Trouble trouble_of_container(const Pod& pod) {
  static const std::vector<std::string> kPull = {"ErrImagePull",      "ImagePullBackOff",
                                                 "InvalidImageName",  "ErrImageNeverPull",
                                                 "ImageInspectError", "RegistryUnavailable"};
  static const std::vector<std::string> kConfig = {"CreateContainerConfigError", "CreateContainerError",
                                                   "RunContainerError"};
  const std::string why = base::string_at(pod.waiting, "reason");
  const std::string message = base::string_at(pod.waiting, "message");
  const std::string words = message.empty() ? why : why + ": " + message;
  if (one_of(why, kPull)) return {kReasonImagePull, words};
  if (one_of(why, kConfig)) return {kReasonContainerConfig, words};
  return {kReasonStarting, why.empty()
                               ? "starting"
                               : words + " (an image or a volume may be on its way: kubectl describe pod)"};
}

Trouble trouble_of(const Pod& pod) {
  if (pod.finished() || pod.phase == PodPhase::kRunning) return {};
  if (base::string_at(pod.scheduled, "status") == "False") {
    const std::string why = base::string_at(pod.scheduled, "reason", "Unschedulable");
    const std::string message = base::string_at(pod.scheduled, "message");
    return {kReasonUnschedulable, message.empty() ? why : why + ": " + message};
  }
  if (pod.node.empty()) return {kReasonScheduling, "has no node yet"};
  return trouble_of_container(pod);
}

// What a person must look at comes first.
int urgency(const std::string& reason) {
  static const std::vector<std::string> kOrder = {kReasonContainerConfig, kReasonImagePull,
                                                  kReasonUnschedulable, kReasonStarting, kReasonScheduling};
  return static_cast<int>(std::find(kOrder.begin(), kOrder.end(), reason) - kOrder.begin());
}

// The first refusal of a create, as the API server put it.
ConditionText judge_refusals(const JobPlan& plan, std::size_t there, const Observed& observed) {
  if (!observed.name_conflicts.empty()) {
    const auto& [what, who] = *observed.name_conflicts.begin();
    return {false, kReasonNameConflict, what + " is taken: " + who};
  }
  if (observed.create_errors.empty()) return {};
  const auto& [what, words] = *observed.create_errors.begin();
  const bool quota = words.find("quota") != std::string::npos;
  return {false, quota ? kReasonQuota : kReasonCreateFailed,
          std::to_string(plan.pods.size() - there) + " of " + std::to_string(plan.pods.size()) +
              " pods are missing; creating " + what + ": " + words};
}

ConditionText judge_troubles(const JobPlan& plan, const std::vector<Pod>& pods, WallTimeValue now,
                             Wake& wake) {
  std::vector<std::string> lines;
  std::string reason;
  std::size_t up = 0;
  std::optional<WallTimeValue> waiting_since;
  for (const Pod& pod : pods) {
    const Trouble trouble = trouble_of(pod);
    if (trouble.reason.empty()) {
      ++up;
      continue;
    }
    lines.push_back(pod.name + " " + trouble.words);
    if (reason.empty() || urgency(trouble.reason) < urgency(reason)) reason = trouble.reason;
    if (trouble.reason == kReasonUnschedulable) waiting_since = time_at(pod.scheduled, "lastTransitionTime");
  }
  if (reason == kReasonUnschedulable && up > 0 && waiting_since) {
    const WallTimeValue tell = *waiting_since + kGangPatience;
    if (tell <= now) reason = kReasonGangIncomplete;
    if (tell > now) wake.by(tell);
  }
  const std::string share = std::to_string(up) + " of " + std::to_string(plan.pods.size()) + " pods run";
  if (!lines.empty()) return {false, reason, share + "; " + name_some(lines)};
  if (pods.size() < plan.pods.size()) return {false, kReasonCreating, share};
  return {true, kReasonAllRunning, share};
}

}  // namespace

std::string name_some(const std::vector<std::string>& names, std::size_t limit) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < limit; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > limit) text += " and " + std::to_string(names.size() - limit) + " more";
  return text;
}

ConditionText judge_pods(const JobPlan& plan, const std::vector<Pod>& pods, const Observed& observed,
                         WallTimeValue now, Wake& wake) {
  if (pods.size() < plan.pods.size()) {
    ConditionText refused = judge_refusals(plan, pods.size(), observed);
    if (!refused.reason.empty()) return refused;
  }
  return judge_troubles(plan, pods, now, wake);
}

}  // namespace evenkeel::oper
