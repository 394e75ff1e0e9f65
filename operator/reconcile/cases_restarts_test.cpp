// Operator cases: counting restarts; pods that do not go and attempts that meet.
#include <gtest/gtest.h>

#include "contract/labels.h"
#include "operator/reconcile/cases_support.h"

namespace evenkeel::oper {
namespace {

const std::vector<std::string> kNothingBroken;

TEST(OperatorCases, OP_07_restart_counted_wrongly_limit_ignored) {
  ClusterFake c = running(R"({"restart": {"maxRestarts": 2}})");
  for (int incident = 1; incident <= 3; ++incident) {
    c.exit("t-worker-1", 70).settle();
    if (incident == 1) c.forget().settle();  // a new operator
    if (incident < 3) c.advance(10).settle().run_all().settle().join_all();
    EXPECT_EQ(c.phase(), incident < 3 ? "Running" : "Failed");
  }
  EXPECT_EQ(c.condition_reason("Failed"), "MaxRestartsExceeded");
  EXPECT_EQ(restarts(c), 2);
  EXPECT_EQ(counted(c), 2);
  c.advance(600).settle();
  EXPECT_EQ(c.count("create Pod t-worker-1-"), 3);
  const Json& failure = c.status()["lastFailure"];
  EXPECT_EQ(failure["rank"], 1);
  EXPECT_EQ(failure["exitCode"], 70);
  EXPECT_EQ(failure["attempt"], 1);
  EXPECT_EQ(failure["node"], "node-1");
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(OperatorCases, OP_08_permanent_exit_leaves_restarting_behind) {
  for (const bool in_an_incident : {false, true}) {
    ClusterFake c = running();
    if (in_an_incident) c.exit("t-worker-0", 137).settle();  // Restarting is True
    const std::int64_t before = restarts(c);
    c.exit("t-worker-2", 65);
    const int creates = c.count("create"), writes = c.count("status");
    const Decision decision = c.step();
    ASSERT_TRUE(decision.status.has_value());
    EXPECT_EQ(c.phase(), "Failed");
    EXPECT_EQ(c.condition("Failed"), "True");
    for (const char* part : {"t-worker-2-1", "65", "restart.rules[0]"})
      EXPECT_TRUE(contains(c.condition_message("Failed"), part)) << c.condition_message("Failed");
    EXPECT_EQ(c.condition("Restarting"), "False");
    EXPECT_EQ(c.condition("Running"), "False");
    EXPECT_TRUE(c.status().contains("completionTime"));
    EXPECT_EQ(restarts(c), before);
    c.settle().advance(60).settle();
    EXPECT_EQ(c.count("create"), creates);
    EXPECT_LE(c.count("status"), writes + 3) << "then only the numbers of its pods";
    EXPECT_EQ(c.broken, kNothingBroken);
  }
}

void expect_disruption(const char* host, const char* status) {
  ClusterFake c = running(R"({"restart": {"maxRestarts": 0}})");
  c.pod(host)["status"] = base::parse_json(status).value();
  c.settle();
  EXPECT_EQ(c.phase(), "Restarting") << status;
  EXPECT_NE(c.condition("Failed"), "True") << status;
  EXPECT_EQ(restarts(c), 1) << status;
  EXPECT_EQ(counted(c), 0) << status;
  EXPECT_EQ(name_of(c.pod(host)), std::string(host) + "-2") << "replaced at once";
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(OperatorCases, OP_09_disruption_taken_for_a_failure_eviction) {
  expect_disruption("t-worker-3", R"({"phase": "Failed", "reason": "Evicted",
      "conditions": [{"type": "DisruptionTarget", "status": "True"}]})");
  expect_disruption("t-worker-3", R"({"phase": "Failed", "reason": "Evicted", "message": "low on resource: memory"})");
}

TEST(OperatorCases, OP_10_disruption_taken_for_a_failure_node_shutdown) {
  expect_disruption("t-worker-0", R"({"phase": "Failed", "reason": "Terminated",
      "message": "Pod was terminated in response to imminent node shutdown.",
      "conditions": [{"type": "DisruptionTarget", "status": "True"}],
      "containerStatuses": [{"name": "trainer", "state": {"terminated": {"exitCode": 143}}}]})");
  expect_disruption("t-worker-0", R"({"phase": "Failed", "reason": "NodeShutdown",
      "message": "Node is shutting, evicting pods",
      "containerStatuses": [{"name": "trainer", "state": {"terminated": {"exitCode": 143}}}]})");
  expect_disruption("t-worker-0", R"({"phase": "Failed", "reason": "Terminated",
      "message": "Pod was terminated in response to imminent node shutdown.",
      "containerStatuses": [{"name": "trainer", "state": {"terminated": {"exitCode": 143}}}]})");
}

TEST(OperatorCases, OP_11_own_deletion_taken_for_a_failure_scale_down) {
  ClusterFake c = running(R"({"workers": {"minReplicas": 1, "maxReplicas": 4}})");
  c.keep_deleted = true;
  const std::string first = uid_of(c.pod("t-worker-0")), second = uid_of(c.pod("t-worker-1"));
  ASSERT_EQ(judge_edit(c, R"({"workers": {"replicas": 2}})"), "");
  c.patch_spec(R"({"workers": {"replicas": 2}})").settle();
  c.report = c.make_report(contract::JobStage::kRunning, 20);  // the coordinator has let two go
  c.settle();
  EXPECT_EQ(c.status()["workers"]["terminating"], 2);
  for (const char* host : {"t-worker-2", "t-worker-3"}) c.exit(host, 143).settle();
  const Json& workers = c.status()["workers"];
  EXPECT_EQ(workers["desired"], 2);
  EXPECT_EQ(workers["running"], 2);
  EXPECT_EQ(workers["failed"], 0);
  EXPECT_EQ(workers["terminating"], 2);
  c.end_deleted().settle();
  EXPECT_EQ(c.status()["workers"]["terminating"], 0);
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_NE(c.condition("Failed"), "True");
  EXPECT_EQ(restarts(c), 0);
  EXPECT_EQ(uid_of(c.pod("t-worker-0")), first);
  EXPECT_EQ(uid_of(c.pod("t-worker-1")), second);
  EXPECT_EQ(c.pods.size(), 3u);
  EXPECT_EQ(c.broken, kNothingBroken);
}

std::vector<Request> forced_deletes(const Decision& decision) {
  std::vector<Request> forced;
  for (const Request& request : decision.requests)
    if (request.verb == Verb::kDelete && request.grace_seconds == 0) forced.push_back(request);
  return forced;
}

// Runs when it asked to, to the given second after `begin`; what was deleted by force on the way.
std::vector<Request> forced_until(ClusterFake& c, WallTimeValue end) {
  std::vector<Request> all;
  while (true) {
    const Decision decision = c.step();
    for (const Request& request : forced_deletes(decision)) all.push_back(request);
    if (decision.status || !decision.requests.empty()) continue;
    if (!decision.requeue_after || c.now + *decision.requeue_after > end) break;
    c.now += *decision.requeue_after;
  }
  c.now = end;
  return all;
}

TEST(OperatorCases, OP_12_pod_stuck_terminating) {
  ClusterFake c = running(R"({"restart": {"terminatingTimeoutSeconds": 20}})");
  const WallTimeValue begin = c.now;
  const std::string uid = uid_of(c.pod("t-worker-2"));
  c.lose_node_of("t-worker-2").settle();
  EXPECT_EQ(name_of(c.pod("t-worker-2")), "t-worker-2-2") << "replaced long before";
  EXPECT_TRUE(contains(c.condition_message("Restarting"), "t-worker-2-1"));
  EXPECT_TRUE(contains(c.condition_message("Restarting"), "node-1"));
  c.run_all().settle().join_all();
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_TRUE(forced_until(c, begin + std::chrono::seconds(19)).empty());
  const auto forced = forced_until(c, begin + std::chrono::seconds(25));
  ASSERT_EQ(forced.size(), 1u);
  EXPECT_EQ(forced[0].uid, uid);
  bool told = false;
  for (const EventNote& event : c.events)
    told |= event.reason == "RankLost" && contains(event.message, "t-worker-2-1 on node node-1");
  EXPECT_TRUE(told);
  EXPECT_TRUE(forced_until(c, begin + std::chrono::seconds(600)).empty());
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(c.broken, kNothingBroken);
}

// The same wherever pods are taken away: suspension and the end of the job.
TEST(OperatorCases, OP_12_also_when_suspended_or_over) {
  for (const bool suspended : {true, false}) {
    ClusterFake c = running(R"({"restart": {"terminatingTimeoutSeconds": 20, "maxRestarts": 0}})");
    c.keep_deleted = true;
    const WallTimeValue begin = c.now;
    if (suspended) c.patch_spec(R"({"suspend": true})").settle();
    if (!suspended) c.exit("t-worker-0", 70).settle();
    EXPECT_TRUE(forced_until(c, begin + std::chrono::seconds(19)).empty());
    c.events.clear();
    const auto forced = forced_until(c, begin + std::chrono::seconds(25));
    EXPECT_EQ(forced.size(), suspended ? 5u : 4u);
    EXPECT_TRUE(c.has_event("RankLost"));
    EXPECT_EQ(c.broken, kNothingBroken);
  }
}

TEST(OperatorCases, OP_13_attempts_overlap) {
  ClusterFake c = running(R"({"restart": {"scope": "Job"}})");
  c.keep_deleted = true;  // a foreign finalizer holds them
  c.log.clear();
  c.exit("t-worker-2", 70).settle();
  ASSERT_FALSE(c.log.empty());
  EXPECT_EQ(c.log.front(), "status Restarting") << "before the first delete";
  EXPECT_EQ(c.attempt(), 2);
  EXPECT_EQ(restarts(c), 1);
  EXPECT_EQ(c.count("delete Pod"), 5);
  for (int second = 0; second < 30; second += 5) c.advance(5).settle();
  EXPECT_EQ(c.count("create Pod"), 0);
  EXPECT_EQ(c.count("delete Pod"), 5) << "asked once";
  c.end_deleted().settle();
  EXPECT_EQ(c.count("create Pod"), 5) << "all at once";
  c.run_all().settle().join_all();
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(restarts(c), 1);
  EXPECT_EQ(c.broken, kNothingBroken);
}

// The addresses that peers resolve: of pods that carry the label which the Service selects.
std::vector<std::string> pods_in_dns(const ClusterFake& c, const std::string& host) {
  std::vector<std::string> names;
  for (const Json& pod : c.pods) {
    if (pod["spec"]["hostname"] == host && pod["metadata"]["labels"].contains(contract::kLabelCurrent))
      names.push_back(name_of(pod));
  }
  return names;
}

TEST(OperatorCases, OP_14_attempts_overlap_quick_suspend_and_resume) {
  ClusterFake c = running();
  c.keep_deleted = true;
  c.patch_spec(R"({"suspend": true})").settle();
  c.now += std::chrono::milliseconds(200);
  c.patch_spec(R"({"suspend": false})").settle().advance(20).settle();
  EXPECT_EQ(c.count("create Pod"), 5) << "the old ones are still going";
  c.end_deleted().settle();
  EXPECT_EQ(c.attempt(), 2);
  EXPECT_EQ(c.count("create Pod"), 10);
  for (int rank = 0; rank < 4; ++rank) {
    const std::string host = "t-worker-" + std::to_string(rank);
    EXPECT_EQ(pods_in_dns(c, host), std::vector<std::string>{host + "-2"});
  }
  c.run_all().settle();
  EXPECT_NE(c.phase(), "Running") << "nobody has said that they step";
  c.join_all();
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(restarts(c), 0);
  EXPECT_EQ(c.broken, kNothingBroken);
}

// Pods on a lost node are not waited for, but their addresses must not be taken for those of their successors.
TEST(OperatorCases, OP_14_a_pod_on_a_lost_node_keeps_no_address) {
  for (const char* patch : {"{}", R"({"restart": {"scope": "Job"}})"}) {
    ClusterFake c = running(patch);
    c.patch_spec(R"({"suspend": true})");
    c.lose_node_of("t-worker-1").settle().advance(61).settle();
    EXPECT_EQ(c.condition("Suspended"), "True");
    c.patch_spec(R"({"suspend": false})").settle();
    EXPECT_EQ(c.pods.size(), 6u) << "the lost one and a new attempt";
    EXPECT_EQ(pods_in_dns(c, "t-worker-1"), std::vector<std::string>{"t-worker-1-2"}) << patch;
    EXPECT_EQ(c.broken, kNothingBroken);
  }
}

}  // namespace
}  // namespace evenkeel::oper
