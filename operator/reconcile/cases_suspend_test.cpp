// Operator cases: suspend and edit.
#include <gtest/gtest.h>

#include "operator/reconcile/cases_support.h"

namespace evenkeel::oper {
namespace {

const std::vector<std::string> kNothingBroken;

// The API server accepts the edit, and the job is brought to rest.
void edit(ClusterFake& c, const std::string& patch) {
  ASSERT_EQ(judge_edit(c, patch), "") << patch;
  c.patch_spec(patch).settle();
}

TEST(OperatorCases, OP_21_suspended_leaks_children) {
  ClusterFake c(R"({"suspend": true})");
  c.settle();
  for (int i = 0; i < 6; ++i) c.advance(10).settle();
  c.forget();
  for (int i = 0; i < 6; ++i) c.advance(10).settle();
  EXPECT_EQ(c.pods.size() + c.services.size() + c.config_maps.size(), 0u);
  EXPECT_EQ(c.count("create"), 0);
  EXPECT_EQ(c.log, std::vector<std::string>{"status Suspended"});
  EXPECT_EQ(c.phase(), "Suspended");
  EXPECT_EQ(c.condition("Suspended"), "True");
  EXPECT_EQ(c.attempt(), 0);
}

TEST(OperatorCases, OP_22_suspend_refused_together_with_an_edit) {
  ClusterFake c = running();
  edit(c, R"({"suspend": true, "workers": {"podOptions": {"nodeSelector": {"disk": "hdd"}}}})");
  EXPECT_EQ(c.phase(), "Suspended");
  EXPECT_EQ(c.pods.size() + c.services.size() + c.config_maps.size(), 0u);
  edit(c, R"({"suspend": false, "workers": {"podOptions": {"nodeSelector": {"disk": "ssd"}}}})");
  EXPECT_EQ(c.attempt(), 2);
  ASSERT_EQ(c.pods.size(), 5u);
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(c.pod("t-worker-" + std::to_string(rank))["spec"]["nodeSelector"], (Json{{"disk", "ssd"}}));
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(OperatorCases, OP_23_resume_uses_the_old_template) {
  ClusterFake c = running(R"({"workers": {
      "image": "trainer:1", "podOptions": {"env": [{"name": "LEVEL", "value": "1"}]},
      "resources": {"limits": {"cpu": "1"}}}, "coordinator": {"resources": {"limits": {"cpu": "100m"}}}})");
  edit(c, R"({"suspend": true})");
  edit(c, R"({"workers": {"image": "trainer:2", "podOptions": {"env": [{"name": "LEVEL", "value": "2"}]},
      "resources": {"limits": {"cpu": "2"}}}, "coordinator": {"resources": {"limits": {"cpu": "200m"}}}})");
  EXPECT_TRUE(c.pods.empty());
  edit(c, R"({"suspend": false})");
  ASSERT_EQ(c.pods.size(), 5u);
  for (const Json& pod : c.pods) {
    const Json& container = pod["spec"]["containers"][0];
    const bool worker = contains(name_of(pod), "worker");
    EXPECT_EQ(container["image"], "trainer:2") << name_of(pod);
    EXPECT_EQ(container["resources"]["limits"]["cpu"], worker ? "2" : "200m") << name_of(pod);
    if (worker) {
      EXPECT_EQ(env_of(pod, "LEVEL"), "2");
    }
  }
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(OperatorCases, OP_24_replicas_cannot_be_changed_while_suspended) {
  ClusterFake c = running(R"({"workers": {"replicas": 2}})");
  edit(c, R"({"suspend": true})");
  edit(c, R"({"workers": {"replicas": 4}})");
  edit(c, R"({"suspend": false})");
  ASSERT_EQ(c.pods.size(), 5u);
  EXPECT_EQ(c.status()["workers"]["desired"], 4);
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(env_of(c.pod("t-worker-" + std::to_string(rank)), "WORLD_SIZE"), "4");
  c.run_all().settle().join_all();
  EXPECT_EQ(c.phase(), "Running");
  const std::string fixed = judge_edit(c, R"({"workers": {"replicas": 5}})");
  EXPECT_TRUE(contains(fixed, "fixed size")) << fixed;
  EXPECT_EQ(c.broken, kNothingBroken);

  const ClusterFake elastic(R"({"workers": {"minReplicas": 2, "maxReplicas": 8}})");
  for (const char* patch : {R"({"workers": {"replicas": 1}})", R"({"workers": {"replicas": 9}})"}) {
    const std::string errors = judge_edit(elastic, patch);
    EXPECT_TRUE(contains(errors, "minReplicas") || contains(errors, "maxReplicas")) << errors;
  }
  EXPECT_EQ(judge_edit(elastic, R"({"workers": {"replicas": 8}})"), "");
}

}  // namespace
}  // namespace evenkeel::oper
