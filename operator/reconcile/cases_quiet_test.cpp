// Operator cases: quiet, and phases that tell the truth.
#include <gtest/gtest.h>

#include <algorithm>

#include "operator/reconcile/cases_support.h"

namespace evenkeel::oper {
namespace {

const std::vector<std::string> kNothingBroken;

ClusterFake succeeded() {
  ClusterFake c = running();
  for (int rank = 0; rank < 4; ++rank) c.exit("t-worker-" + std::to_string(rank), 0);
  c.exit("t-coordinator-0", 0).settle().advance(15).settle();
  return c;
}

TEST(OperatorCases, OP_31_writes_at_rest) {
  std::vector<ClusterFake> jobs;
  for (int i = 0; i < 4; ++i) jobs.push_back(succeeded());
  for (int i = 0; i < 3; ++i) {
    ClusterFake suspended = running();
    suspended.patch_spec(R"({"suspend": true})").settle();
    jobs.push_back(suspended);
  }
  constexpr char kWhole[] = R"({"restart": {"scope": "Job"}})";
  constexpr char kScalable[] = R"({"workers": {"minReplicas": 2, "maxReplicas": 8}})";
  for (const char* patch : {"{}", kWhole, kScalable})
    jobs.push_back(running(patch));
  ASSERT_EQ(jobs.size(), 10u);
  for (ClusterFake& c : jobs) {
    const std::size_t writes = c.log.size();
    const int status_writes = c.count("status");
    const Json status = c.status();
    for (int second = 0; second < 120; second += 2) {
      c.advance(2);
      if (c.report) c.report = c.make_report(contract::JobStage::kRunning, 10);  // the same numbers again
      c.settle();
      if (second == 60) c.forget();
    }
    // A new operator asks once more for the key, which it cannot look at.
    EXPECT_LE(c.log.size(), writes + 1) << c.log.back();
    EXPECT_EQ(c.count("status"), status_writes);
    EXPECT_EQ(c.status(), status) << "no lastTransitionTime moves";
    EXPECT_EQ(c.broken, kNothingBroken);
  }
}

TEST(OperatorCases, OP_34_phase_does_not_tell_the_truth) {
  ClusterFake c;
  c.settle().advance(30).settle();
  EXPECT_EQ(c.phase(), "Pending");
  EXPECT_EQ(c.status()["workers"]["readyText"], "0/4");
  c.run("t-coordinator-0").settle();
  EXPECT_EQ(c.phase(), "Pending") << "the coordinator is no rank";
  c.run("t-worker-0").run("t-worker-1").settle();
  EXPECT_EQ(c.phase(), "Starting");
  EXPECT_EQ(c.status()["workers"]["readyText"], "2/4");
  c.run_all().settle();
  EXPECT_EQ(c.status()["workers"]["readyText"], "4/4");
  EXPECT_EQ(c.phase(), "Starting") << "they have not joined";
  EXPECT_EQ(c.condition("Running"), "False");
  c.report = c.make_report(contract::JobStage::kRendezvous, 0);
  c.settle();
  EXPECT_EQ(c.phase(), "Starting") << "nor stepped";
  c.report = c.make_report(contract::JobStage::kRunning, 1);
  c.report->replicas[3].state = "lost";
  c.report->joined = 3;
  c.settle();
  EXPECT_EQ(c.phase(), "Starting");
  EXPECT_EQ(c.condition("Running"), "False");
  c.join_all();
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(c.condition("Running"), "True");
  EXPECT_EQ(c.broken, kNothingBroken);
}

void expect_one_of_each_type(const ClusterFake& c) {
  std::set<std::string> types;
  for (const Json& condition : c.status()["conditions"])
    EXPECT_TRUE(types.insert(base::string_at(condition, "type")).second) << condition;
}

TEST(OperatorCases, OP_35_stale_condition_in_the_column) {
  ClusterFake c = running();
  std::vector<std::string> column{c.phase()};
  const auto look = [&] {
    if (c.phase() != column.back()) column.push_back(c.phase());
    expect_one_of_each_type(c);
  };
  // Whoever reads the conditions in another order reads the same.
  Json& conditions = c.job.status_json["conditions"];
  std::reverse(conditions.begin(), conditions.end());
  c.patch_spec(R"({"suspend": true})").settle();
  look();
  EXPECT_EQ(c.condition("Suspended"), "True");
  EXPECT_EQ(c.condition("Running"), "False");
  c.patch_spec(R"({"suspend": false})").settle();
  EXPECT_EQ(c.condition("Suspended"), "False") << "what kubectl wait asks for";
  c.run("t-worker-0").settle();
  look();
  c.run_all().settle();
  look();
  c.join_all();
  look();
  EXPECT_EQ(column, (std::vector<std::string>{"Running", "Suspended", "Starting", "Running"}));
  EXPECT_EQ(c.condition("Suspended"), "False");
  EXPECT_EQ(c.condition("Running"), "True");
  EXPECT_EQ(c.broken, kNothingBroken);
}

}  // namespace
}  // namespace evenkeel::oper
