#include "operator/reconcile/children.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "contract/labels.h"
#include "operator/reconcile/status.h"
#include "operator/render/metadata.h"

namespace evenkeel::oper {
namespace {

std::int64_t number_label(const Json& labels, const char* name, std::int64_t fallback) {
  const std::string text = base::string_at(labels, name);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value >= 0 ? value : fallback;
}

PodPhase parse_phase(const std::string& name) {
  if (name == "Running") return PodPhase::kRunning;
  if (name == "Succeeded") return PodPhase::kSucceeded;
  if (name == "Failed") return PodPhase::kFailed;
  return PodPhase::kPending;  // Unknown and absent: it may still run, and nothing is decided from it
}

const Json& item_named(const Json& list, const char* key, const std::string& name) {
  static const Json kEmpty = Json::object();
  if (!list.is_array()) return kEmpty;
  for (const Json& item : list) {
    if (base::string_at(item, key) == name) return item;
  }
  return kEmpty;
}

const Json& trainer_container(const Json& status) {
  const Json& list = base::child(status, "containerStatuses");
  const Json& named = item_named(list, "name", contract::kContainerName);
  if (named.empty() && list.is_array() && !list.empty()) return list.front();
  return named;
}

bool is_true(const Json& condition) {
  return base::string_at(condition, "status") == "True";
}

void read_labels(Pod& pod, const Json& labels) {
  pod.attempt = number_label(labels, contract::kLabelAttempt, 0);
  pod.incarnation = number_label(labels, contract::kLabelIncarnation, 0);
  pod.rank =
      static_cast<int>(std::min<std::int64_t>(number_label(labels, contract::kLabelRank, -1), 1 << 20));
  const auto role = contract::parse_role(base::string_at(labels, contract::kLabelRole));
  if (role.ok()) pod.role = *role;
  pod.in_dns = base::string_at(labels, contract::kLabelCurrent) == "true";
}

void read_container(Pod& pod, const Json& status) {
  const Json& state = base::child(trainer_container(status), "state");
  pod.waiting = base::child(state, "waiting");
  const Json& terminated = base::child(state, "terminated");
  if (terminated.empty()) return;
  pod.exit_code = static_cast<int>(base::int_at(terminated, "exitCode", 1));
  pod.finished_time = time_at(terminated, "finishedAt");
  pod.termination_message = base::string_at(terminated, "message");
  if (pod.reason.empty()) pod.reason = base::string_at(terminated, "reason");
}

// Kubelet's and the eviction API's words for "not the program's fault". A pod that failed without an exit
// code never ran, or ran on a node that cannot tell any more.
bool is_disrupted(const Pod& pod, const Json& conditions) {
  static const std::vector<std::string> kReasons = {"Evicted",  "NodeShutdown", "Shutdown",
                                                    "NodeLost", "Preempting",   "Preempted"};
  if (is_true(item_named(conditions, "type", "DisruptionTarget"))) return true;
  if (std::find(kReasons.begin(), kReasons.end(), pod.reason) != kReasons.end()) return true;
  if (pod.reason == "Terminated" && pod.message.find("shutdown") != std::string::npos) return true;
  return pod.phase == PodPhase::kFailed && !pod.exit_code;
}

}  // namespace

std::optional<WallTimeValue> Pod::deletion_asked() const {
  if (!deletion_time) return std::nullopt;
  return *deletion_time - std::chrono::seconds(deletion_grace_seconds);
}

std::vector<Pod> Children::all_pods() const {
  std::vector<Pod> all = current;
  all.insert(all.end(), retired.begin(), retired.end());
  all.insert(all.end(), older.begin(), older.end());
  return all;
}

Pod read_pod(const Json& object) {
  const Json& metadata = base::child(object, "metadata");
  const Json& status = base::child(object, "status");
  const Json& conditions = base::child(status, "conditions");
  Pod pod;
  pod.name = base::string_at(metadata, "name");
  pod.uid = base::string_at(metadata, "uid");
  pod.node = base::string_at(base::child(object, "spec"), "nodeName");
  read_labels(pod, base::child(metadata, "labels"));
  pod.wanted_hint = base::string_at(base::child(metadata, "annotations"), contract::kAnnotationWanted);
  pod.deletion_grace_seconds =
      std::clamp<std::int64_t>(base::int_at(metadata, "deletionGracePeriodSeconds"), 0, 1 << 20);
  pod.deletion_time = time_at(metadata, "deletionTimestamp");
  pod.phase = parse_phase(base::string_at(status, "phase"));
  const Json& ready = item_named(conditions, "type", "Ready");
  pod.ready = pod.phase == PodPhase::kRunning && (ready.empty() || is_true(ready));
  pod.reason = base::string_at(status, "reason");
  pod.message = base::string_at(status, "message");
  pod.scheduled = item_named(conditions, "type", "PodScheduled");
  read_container(pod, status);
  pod.disrupted = is_disrupted(pod, conditions);
  const std::string why = base::string_at(item_named(conditions, "type", "DisruptionTarget"), "reason");
  pod.node_lost = base::string_at(status, "reason") == "NodeLost" || why == "DeletionByTaintManager";
  return pod;
}

Children sort_children(const contract::ObjectMeta& job, const std::vector<Json>& pods,
                       const std::vector<Json>& services, const std::vector<Json>& config_maps,
                       std::int64_t attempt) {
  Children children;
  for (const Json& object : pods) {
    if (!is_controlled_by(object, job.uid)) continue;
    Pod pod = read_pod(object);
    if (pod.name.empty() || pod.uid.empty()) continue;  // cannot be named in a request
    children.newest_attempt = std::max(children.newest_attempt, pod.attempt);
    (pod.attempt == attempt && attempt > 0 ? children.current : children.older).push_back(std::move(pod));
  }
  const auto order = [](const Pod& a, const Pod& b) {
    return std::tie(a.role, a.rank, a.incarnation, a.name) < std::tie(b.role, b.rank, b.incarnation, b.name);
  };
  std::sort(children.current.begin(), children.current.end(), order);
  std::sort(children.older.begin(), children.older.end(), order);
  const auto keep_own = [&](const std::vector<Json>& from, std::vector<Json>& to) {
    for (const Json& object : from) {
      if (is_controlled_by(object, job.uid)) to.push_back(object);
    }
  };
  keep_own(services, children.services);
  keep_own(config_maps, children.config_maps);
  return children;
}

void keep_planned(Children& children, const JobPlan& plan) {
  std::vector<Pod> found = std::move(children.current);
  children.current.clear();
  for (Pod& pod : found) {
    const auto planned = std::find_if(plan.pods.begin(), plan.pods.end(),
                                      [&](const PodPlan& p) { return p.name == pod.name; });
    if (planned == plan.pods.end()) {
      children.older.push_back(std::move(pod));
      continue;
    }
    pod.role = planned->role;
    pod.rank = planned->rank;
    children.current.push_back(std::move(pod));
  }
}

const Pod* pod_named(const std::vector<Pod>& pods, const std::string& name) {
  const auto at = std::find_if(pods.begin(), pods.end(), [&](const Pod& pod) { return pod.name == name; });
  return at == pods.end() ? nullptr : &*at;
}

}  // namespace evenkeel::oper
