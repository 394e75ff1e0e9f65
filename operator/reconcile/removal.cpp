#include "operator/reconcile/removal.h"

#include "contract/labels.h"

namespace evenkeel::oper {
namespace {

Request delete_pod(const Pod& pod, const std::string& reason) {
  Request request;
  request.verb = Verb::kDelete;
  request.kind = "Pod";
  request.name = pod.name;
  request.uid = pod.uid;
  request.reason = reason;
  return request;
}

std::string place(const Pod& pod) {
  return pod.node.empty() ? pod.name : pod.name + " on node " + pod.node;
}

// When a pod that was told to go may be forced; nothing if it must not, or has been (its grace is then 0).
std::optional<WallTimeValue> force_time(const Pod& pod, int timeout_seconds) {
  if (timeout_seconds <= 0 || pod.deletion_grace_seconds == 0) return std::nullopt;
  return *pod.deletion_asked() + std::chrono::seconds(timeout_seconds);
}

}  // namespace

Removal remove_pods(const std::vector<Pod>& pods, int terminating_timeout_seconds, const std::string& reason,
                    WallTimeValue now, Wake& wake) {
  Removal removal;
  for (const Pod& pod : pods) {
    const bool lost = pod.node_lost && pod.deleting() && *pod.deletion_time <= now;
    if (lost) removal.passed_by.push_back(pod);
    if (!lost) removal.blocked_by.push_back(place(pod));
    if (pod.node_lost && pod.deleting() && *pod.deletion_time > now) wake.by(*pod.deletion_time);
    if (!pod.deleting()) {
      removal.requests.push_back(delete_pod(pod, reason));
      continue;
    }
    const auto force = force_time(pod, terminating_timeout_seconds);
    if (!force) continue;
    if (*force > now) {
      wake.by(*force);
      continue;
    }
    removal.requests.push_back(
        delete_pod(pod, "terminating for more than " + std::to_string(terminating_timeout_seconds) + " s"));
    removal.requests.back().grace_seconds = 0;
    removal.forced.push_back(place(pod));
  }
  return removal;
}

Request hide_pod(const Pod& pod) {
  Request request;
  request.verb = Verb::kPatch;
  request.kind = "Pod";
  request.name = pod.name;
  request.uid = pod.uid;
  request.body["metadata"]["labels"][contract::kLabelCurrent] = nullptr;
  request.reason = "it holds no rank any more";
  return request;
}

Request delete_object(const std::string& kind, const Json& object, const std::string& reason) {
  Request request;
  request.verb = Verb::kDelete;
  request.kind = kind;
  request.name = base::string_at(base::child(object, "metadata"), "name");
  request.uid = base::string_at(base::child(object, "metadata"), "uid");
  request.reason = reason;
  return request;
}

}  // namespace evenkeel::oper
