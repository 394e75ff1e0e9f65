// What the operator's cases have in common: a job that runs, its counters and pods, and edits judged as the API server
// judges them. Tests only.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "contract/job/manifest_fixture.h"
#include "contract/job/validate.h"
#include "operator/reconcile/cluster_fake.h"

namespace evenkeel::oper {

inline ClusterFake running(const std::string& patch = "{}") {
  ClusterFake cluster(patch);
  cluster.settle().run_all().settle().join_all();
  return cluster;
}

inline std::string name_of(const Json& object) {
  return base::string_at(base::child(object, "metadata"), "name");
}
inline std::string uid_of(const Json& object) {
  return base::string_at(base::child(object, "metadata"), "uid");
}

inline std::set<std::string> pod_uids(const ClusterFake& c) {
  std::set<std::string> uids;
  for (const Json& pod : c.pods) uids.insert(uid_of(pod));
  return uids;
}

inline std::int64_t restarts(const ClusterFake& c) {
  return base::int_at(base::child(c.status(), "restarts"), "total");
}
inline std::int64_t counted(const ClusterFake& c) {
  return base::int_at(base::child(c.status(), "restarts"), "countedTowardsMax");
}

inline std::string env_of(const Json& pod, const std::string& name) {
  for (const Json& variable : pod["spec"]["containers"][0]["env"]) {
    if (variable["name"] == name) return base::string_at(variable, "value");
  }
  return "absent";
}

inline Json manifest_of(const Json& spec) {
  Json object = contract::short_manifest();
  object["metadata"] = {{"name", "t"}, {"namespace", "a"}};
  object["spec"] = spec;
  return object;
}

inline std::string errors_of(const Json& object, const Json& old_object = Json()) {
  std::string all;
  for (const contract::FieldError& error : contract::validate_job(object, old_object)) all += error.text() + "\n";
  return all;
}

// What the API server says to one PATCH of the spec; "": accepted.
inline std::string judge_edit(const ClusterFake& c, const std::string& patch) {
  Json spec = c.job.spec_json;
  spec.merge_patch(base::parse_json(patch).value());
  return errors_of(manifest_of(spec), manifest_of(c.job.spec_json));
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace evenkeel::oper
