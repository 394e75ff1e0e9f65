// tests/rights/attacks.json, as if a loose schema had let each of them into the store: the pods are those of
// a job that never asked. tests/rights/rights_test.sh lets a real API server refuse the same list.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "contract/job/manifest_fixture.h"
#include "contract/job/validate.h"
#include "contract/labels.h"
#include "operator/render/objects.h"
#include "operator/render/pod.h"

namespace evenkeel::oper {
namespace {

Json attacks() {
  std::ifstream file(EVENKEEL_SOURCE_DIR "/tests/rights/attacks.json");
  std::stringstream text;
  text << file.rdbuf();
  auto parsed = base::parse_json(text.str());
  EXPECT_TRUE(parsed.ok());
  return parsed.ok() ? *parsed : Json::array();
}

Json base_manifest() {
  Json manifest = contract::short_manifest();
  manifest["metadata"]["namespace"] = "team";
  manifest["metadata"]["uid"] = "0123456789abcdef";
  manifest["spec"]["checkpoint"] = {{"path", "/checkpoints"}};
  return manifest;
}

// The parts of `spec` that could harm, put into a valid job without asking the rules.
contract::TrainingJob as_stored(const Json& spec) {
  contract::TrainingJob job = contract::decode_job(base_manifest()).value();
  contract::TrainingJobSpec& out = job.spec;
  const Json& workers = base::child(spec, "workers");
  out.workers.shape.pod_options = base::child(workers, "podOptions");
  out.coordinator.pod_options = base::at_path(spec, {"coordinator", "podOptions"});
  for (const Json& item : base::child(workers, "overrides")) {
    contract::WorkerOverride over;
    over.replicas = item["replicas"].get<std::vector<int>>();
    over.shape.pod_options = item["podOptions"];
    out.workers.overrides.push_back(over);
  }
  out.dataset.path = base::string_at(base::child(spec, "dataset"), "path", out.dataset.path);
  out.dataset.volume = base::at_path(spec, {"dataset", "volume"});
  out.checkpoint.path = base::string_at(base::child(spec, "checkpoint"), "path", out.checkpoint.path);
  out.checkpoint.volume = base::at_path(spec, {"checkpoint", "volume"});
  return job;
}

std::vector<Json> pods_of(const contract::TrainingJob& job) {
  const JobPlan plan = make_plan(job, 1, 1);
  std::vector<Json> pods;
  for (const PodPlan& pod : plan.pods) pods.push_back(render_pod(job, plan, pod, {"trainer:1", {}}));
  return pods;
}

// What a schema can not tell from a harmless value is left to Kubernetes, which refuses such a pod.
bool judged_by_kubernetes(const Json& attack) {
  return base::string_at(attack, "layer") == "schema" || base::string_at(attack, "layer") == "policy";
}

TEST(Attacks, there_are_many_and_each_layer_has_some) {
  std::map<std::string, int> layers;
  for (const Json& attack : attacks()) ++layers[base::string_at(attack, "layer")];
  EXPECT_GE(attacks().size(), 40u);
  for (const char* layer : {"declared", "cel", "schema", "policy"}) EXPECT_GE(layers[layer], 5) << layer;
  EXPECT_EQ(layers.size(), 4u);
}

TEST(Attacks, what_the_schema_or_a_rule_refuses_the_cpp_rules_refuse_too) {
  for (const Json& attack : attacks()) {
    if (attack["layer"] == "policy") continue;  // who asks is not in the object
    Json manifest = base_manifest();
    manifest["spec"].merge_patch(attack["spec"]);
    EXPECT_FALSE(contract::validate_job(manifest).empty()) << attack["name"];
  }
}

// The case of that number asks for five of these; here are all.
TEST(OperatorCases, OP_43_rights_through_the_pod_options) {
  const std::vector<Json> clean = pods_of(as_stored(Json::object()));
  int judged = 0;
  for (const Json& attack : attacks()) {
    if (judged_by_kubernetes(attack)) continue;
    ++judged;
    std::vector<Json> pods = pods_of(as_stored(attack["spec"]));
    ASSERT_EQ(pods.size(), clean.size());
    for (std::size_t i = 0; i < pods.size(); ++i) {
      // The harmless half of an attack: an own, empty volume.
      Json& spec = pods[i]["spec"];
      Json volumes = Json::array();
      for (const Json& volume : spec["volumes"]) {
        if (volume != Json{{"name", "h"}, {"emptyDir", Json::object()}}) volumes.push_back(volume);
      }
      spec["volumes"] = volumes;
      EXPECT_EQ(base::dump_json(pods[i]), base::dump_json(clean[i])) << attack["name"];
    }
  }
  EXPECT_GE(judged, 40);
}

TEST(Attacks, the_account_that_the_policy_let_pass_has_no_token_in_the_pod) {
  for (const Json& attack : attacks()) {
    if (attack["layer"] != "policy") continue;
    int named = 0;
    for (const Json& pod : pods_of(as_stored(attack["spec"]))) {
      EXPECT_EQ(pod["spec"]["automountServiceAccountToken"], false) << attack["name"];
      named += pod["spec"].contains("serviceAccountName") ? 1 : 0;
    }
    EXPECT_GE(named, 1) << attack["name"];
  }
}

}  // namespace
}  // namespace evenkeel::oper
