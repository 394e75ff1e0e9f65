// Operator cases: terminal is terminal.
#include <gtest/gtest.h>

#include "operator/reconcile/cases_support.h"

namespace evenkeel::oper {
namespace {

using contract::JobStage;
const std::vector<std::string> kNothingBroken;

void succeed(ClusterFake& c) {
  for (int rank = 0; rank < c.job.spec.workers.replicas; ++rank) c.exit("t-worker-" + std::to_string(rank), 0);
  c.exit("t-coordinator-0", 0, contract::termination_message(c.make_report(JobStage::kCompleted, 100)));
}

TEST(OperatorCases, OP_15_finished_work_runs_again) {
  for (const bool well : {true, false}) {
    ClusterFake c = running(R"({"restart": {"maxRestarts": 1}})");
    if (well) succeed(c);
    for (int incident = 0; incident < 2 && !well; ++incident)
      c.exit("t-worker-1", 70).settle().advance(5).settle().run_all().settle();
    c.settle().advance(20).settle();
    const std::string phase = c.phase();
    ASSERT_EQ(phase, well ? "Succeeded" : "Failed");
    const Json restarts_then = c.status()["restarts"], progress = c.status()["progress"];
    const int creates = c.count("create");
    c.pods.clear();
    c.services.clear();
    c.config_maps.clear();
    c.secret_exists = false;
    for (int i = 0; i < 3; ++i) c.forget().settle();
    c.job.meta.resource_version = "99";  // an annotation
    c.advance(120).settle();
    EXPECT_EQ(c.count("create"), creates);
    EXPECT_EQ(c.phase(), phase);
    EXPECT_EQ(c.status()["restarts"], restarts_then);
    EXPECT_EQ(c.status()["progress"], progress);
    EXPECT_EQ(c.broken, kNothingBroken);
    c.patch_spec(R"({"cleanup": {"ttlSecondsAfterFinished": 60}})").settle();
    EXPECT_TRUE(c.job_deleted);
    EXPECT_EQ(c.count("delete TrainingJob"), 1);
  }
}

TEST(OperatorCases, OP_16_finished_work_runs_again_outcome_seen_too_late) {
  for (const char* scope : {"Worker", "Job"}) {
    ClusterFake c = running(std::string(R"({"workers": {"replicas": 3}, "restart": {"maxRestarts": 0, "scope": ")") +
                            scope + R"("}})");
    c.report = c.make_report(JobStage::kRunning, 99);
    c.settle();
    // While nobody looked: worker 1 has ended well and was collected.
    c.exit("t-worker-1", 0).erase_pod("t-worker-1").forget().settle();
    EXPECT_NE(c.phase(), "Failed") << "who has gone without a trace has not failed";
    c.run_all().settle();  // one that was made again has nothing to do
    succeed(c);
    c.settle().advance(20).settle();
    EXPECT_EQ(c.phase(), "Succeeded") << scope;
    EXPECT_EQ(c.status()["progress"]["samples"], 25600) << scope;
    EXPECT_EQ(counted(c), 0) << scope;
    EXPECT_EQ(c.broken, kNothingBroken);
  }
  // The others have ended too: nobody is made again at all.
  ClusterFake all = running(R"({"workers": {"replicas": 3}})");
  const int creates = all.count("create");
  succeed(all);
  all.erase_pod("t-worker-1").forget().settle();
  EXPECT_EQ(all.phase(), "Succeeded");
  EXPECT_EQ(all.count("create"), creates);
  EXPECT_EQ(all.status()["progress"]["samples"], 25600);
}

TEST(OperatorCases, OP_17_finished_job_keeps_its_pods) {
  ClusterFake c = running(R"({"restart": {"maxRestarts": 0}})");
  c.exit("t-worker-2", 70);
  const Decision end = c.step();
  ASSERT_TRUE(end.status.has_value());
  EXPECT_EQ((*end.status)["phase"], "Failed");
  EXPECT_TRUE(end.status->contains("completionTime"));
  std::set<std::string> deleted;
  for (const Request& request : end.requests) {
    EXPECT_EQ(request.verb, Verb::kDelete);
    EXPECT_FALSE(request.grace_seconds.has_value()) << "each has its own time to end";
    deleted.insert(request.name);
  }
  EXPECT_EQ(deleted, (std::set<std::string>{"t-coordinator-0-1", "t-worker-0-1", "t-worker-1-1", "t-worker-3-1"}));
  c.settle();
  ASSERT_EQ(c.pods.size(), 1u);
  EXPECT_EQ(name_of(c.pods[0]), "t-worker-2-1") << "finished pods stay";
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(OperatorCases, OP_19_clean_up_policy_ignored) {
  struct Row {
    const char* policy;
    std::size_t pods_left;
  };
  for (const Row& row : {Row{"None", 5}, Row{"Running", 1}, Row{"All", 0}}) {
    ClusterFake c = running(std::string(R"({"restart": {"maxRestarts": 0}, "cleanup": {"podPolicy": ")") + row.policy +
                            R"("}})");
    c.exit("t-worker-1", 70).settle().advance(60).settle();
    EXPECT_EQ(c.phase(), "Failed");
    EXPECT_EQ(c.pods.size(), row.pods_left) << row.policy;
    EXPECT_EQ(c.count("delete Pod"), static_cast<int>(5 - row.pods_left)) << row.policy;
    EXPECT_EQ(c.broken, kNothingBroken);
  }
}

TEST(OperatorCases, OP_20_timer_not_kept) {
  constexpr char kTtl[] = R"({"cleanup": {"ttlSecondsAfterFinished": 60}})";
  ClusterFake alone = running(kTtl);
  succeed(alone);
  alone.settle();
  const WallTimeValue end = alone.now;
  for (int wakes = 0; !alone.job_deleted && wakes < 10; ++wakes) {  // no event but the clock
    const Decision decision = alone.step();
    if (alone.job_deleted) break;
    ASSERT_TRUE(decision.requeue_after.has_value());
    alone.now += *decision.requeue_after;
  }
  EXPECT_TRUE(alone.job_deleted);
  EXPECT_GE(alone.now - end, std::chrono::seconds(60));
  EXPECT_LE(alone.now - end, std::chrono::seconds(65));

  ClusterFake away = running(kTtl);
  succeed(away);
  away.settle().advance(10);
  EXPECT_FALSE(away.job_deleted);
  away.advance(80).forget();  // stopped meanwhile
  away.settle();
  EXPECT_TRUE(away.job_deleted) << "at the first look";
  EXPECT_EQ(away.count("delete TrainingJob"), 1);
}

}  // namespace
}  // namespace evenkeel::oper
