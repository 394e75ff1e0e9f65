#include "operator/reconcile/retirement.h"

#include <algorithm>

#include "contract/labels.h"
#include "operator/reconcile/phase_policy.h"
#include "operator/reconcile/removal.h"
#include "operator/reconcile/text.h"

namespace evenkeel::oper {
namespace {

using contract::Role;

Request patch(const std::string& kind, const std::string& name, const std::string& uid, Json body,
              const std::string& reason) {
  Request request;
  request.verb = Verb::kPatch;
  request.kind = kind;
  request.name = name;
  request.uid = uid;
  request.body = std::move(body);
  request.reason = reason;
  return request;
}

// A worker beyond the wanted number takes part until the coordinator, who has read that number, lists it no
// more.
bool is_member(const Turn& turn, const Pod& pod) {
  const bool surplus = pod.role == Role::kWorker && pod.rank >= turn.plan.workers;
  const bool untouched = !pod.deleting() && !pod.finished() && pod.phase != PodPhase::kPending;
  const auto& handled = turn.status.restarts.handled;
  if (!surplus || !untouched || std::ranges::find(handled, pod.uid) != handled.end()) return false;
  if (!turn.report || turn.report->ranks != turn.plan.ranks) return true;
  return std::ranges::any_of(turn.report->replicas, [&](const contract::ReplicaReport& replica) {
    return replica.pod == pod.name && takes_part(replica);
  });
}

bool has_wanted(const Json& config_map, const std::string& number) {
  return base::string_at(base::child(config_map, "data"), contract::kWantedFile) == number;
}

}  // namespace

std::vector<Request> retire_pods(Turn& turn) {
  std::vector<Pod> leaving;
  for (const Pod& pod : turn.children.retired) {
    if (is_member(turn, pod)) {
      turn.because("waiting until " + pod.name + " has left");
    } else {
      leaving.push_back(pod);
    }
  }
  std::vector<Request> requests;
  for (const Pod& pod : leaving) {
    if (pod.in_dns) requests.push_back(hide_pod(pod));
  }
  Removal removal = remove_pods(leaving, turn.job.spec.restart.terminating_timeout_seconds,
                                "it holds no rank any more", turn.now, turn.wake);
  turn.tell_forced(removal.forced);
  std::ranges::move(removal.requests, std::back_inserter(requests));
  return requests;
}

std::vector<Request> tell_wanted(const Turn& turn) {
  std::vector<Request> requests;
  if (turn.plan.wanted_map.empty()) return requests;
  const std::string number = std::to_string(turn.plan.workers);
  const std::string reason = "workers.replicas is " + number;
  for (const Json& config_map : turn.children.config_maps) {
    const Json& metadata = base::child(config_map, "metadata");
    if (base::string_at(metadata, "name") != turn.plan.wanted_map || has_wanted(config_map, number)) continue;
    Json body;
    body["data"][contract::kWantedFile] = number;
    requests.push_back(
        patch("ConfigMap", turn.plan.wanted_map, base::string_at(metadata, "uid"), std::move(body), reason));
  }
  const Pod* coordinator = turn.coordinator();
  const bool listens = coordinator != nullptr && !coordinator->deleting() && !coordinator->finished();
  if (!listens || coordinator->wanted_hint == number) return requests;
  Json body;
  body["metadata"]["annotations"][contract::kAnnotationWanted] = number;
  requests.push_back(patch("Pod", coordinator->name, coordinator->uid, std::move(body), reason));
  return requests;
}

}  // namespace evenkeel::oper
