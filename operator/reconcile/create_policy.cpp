#include "operator/reconcile/create_policy.h"

#include <algorithm>
#include <set>

#include "contract/job/json_same.h"
#include "operator/reconcile/removal.h"
#include "operator/render/objects.h"
#include "operator/render/pod.h"

namespace evenkeel::oper {
namespace {

std::string name_of(const Json& object) {
  return base::string_at(base::child(object, "metadata"), "name");
}

bool has(const std::vector<Json>& objects, const std::string& name) {
  return std::any_of(objects.begin(), objects.end(),
                     [&](const Json& object) { return name_of(object) == name; });
}

Request create(Json body, const std::string& reason) {
  Request request;
  request.verb = Verb::kCreate;
  request.kind = base::string_at(body, "kind");
  request.name = name_of(body);
  request.body = std::move(body);
  request.reason = reason;
  return request;
}

// Whether `stored` has all of `wanted`; what the API server adds to an object does not count.
bool shows(const Json& stored, const Json& wanted) {
  if (wanted.is_object()) {
    for (const auto& [name, value] : wanted.items()) {
      if (!stored.is_object() || !stored.contains(name) || !shows(stored[name], value)) return false;
    }
    return true;
  }
  if (!wanted.is_array()) return contract::same_json(stored, wanted);
  if (!stored.is_array() || stored.size() != wanted.size()) return false;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!shows(stored[i], wanted[i])) return false;
  }
  return true;
}

bool is_going(const Json& object) {
  return !base::string_at(base::child(object, "metadata"), "deletionTimestamp").empty();
}

}  // namespace

std::vector<Request> missing_objects(const contract::TrainingJob& job, const JobPlan& plan,
                                     const Children& children, bool secret_made,
                                     const ReconcileOptions& options) {
  std::vector<Request> requests;
  const std::string attempt = "attempt " + std::to_string(plan.attempt);
  std::set<std::string> there;
  for (const Pod& pod : children.current) there.insert(pod.name);
  const auto is_missing = [&](const PodPlan& pod) { return !pod.held_back && !there.contains(pod.name); };
  // A Secret cannot be looked at, only made. A pod whose Secret somebody deleted would wait for ever.
  if (!secret_made || std::ranges::any_of(plan.pods, is_missing)) {
    requests.push_back(create(render_secret(job, plan), "the job's key, made once"));
    requests.back().in_use = !children.current.empty();
  }
  if (!has(children.services, plan.service))
    requests.push_back(create(render_service(job, plan), "the pods' names"));
  if (!has(children.config_maps, plan.config_map))
    requests.push_back(create(render_config_map(job, plan), "configuration of " + attempt));
  if (!plan.wanted_map.empty() && !has(children.config_maps, plan.wanted_map))
    requests.push_back(create(render_wanted_map(job, plan), "the number of workers that are wanted"));
  const PodDefaults defaults{options.trainer_image, options.pod_defaults};
  for (const PodPlan& pod : plan.pods) {
    if (is_missing(pod))
      requests.push_back(create(render_pod(job, plan, pod, defaults), attempt));
  }
  return requests;
}

std::vector<Request> stale_config_maps(const JobPlan& plan, const Children& children) {
  std::vector<Request> requests;
  for (const Json& object : children.config_maps) {
    if (name_of(object) != plan.config_map && name_of(object) != plan.wanted_map)
      requests.push_back(delete_object("ConfigMap", object, "of an earlier attempt"));
  }
  return requests;
}

std::vector<Request> repaired_service(const contract::TrainingJob& job, const JobPlan& plan,
                                      const Children& children) {
  std::vector<Request> requests;
  const Json wanted = render_service(job, plan)["spec"];
  for (const Json& service : children.services) {
    const Json& spec = base::child(service, "spec");
    const Json& selector = base::child(spec, "selector");
    if (name_of(service) != plan.service || is_going(service)) continue;
    if (shows(spec, wanted) && contract::same_json(selector, wanted["selector"])) continue;
    Request request;
    request.verb = Verb::kPatch;
    request.kind = "Service";
    request.name = plan.service;
    request.uid = base::string_at(base::child(service, "metadata"), "uid");
    request.reason = "somebody has edited it";
    Json& body = request.body["spec"];
    body = wanted;
    body.erase("clusterIP");  // can not change
    if (selector.is_object()) {
      for (const auto& key : selector.items()) {
        if (!wanted["selector"].contains(key.key())) body["selector"][key.key()] = nullptr;
      }
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace evenkeel::oper
