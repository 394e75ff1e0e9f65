// Operator cases: what surrounds a pod, and pods that are deleted or killed.
#include <gtest/gtest.h>

#include <algorithm>

#include "contract/labels.h"
#include "operator/reconcile/cases_support.h"

namespace evenkeel::oper {
namespace {

const std::vector<std::string> kNothingBroken;

TEST(OperatorCases, OP_37_gang_incomplete_burns_pods) {
  ClusterFake c;
  c.settle();
  for (const char* host : {"t-coordinator-0", "t-worker-0", "t-worker-1", "t-worker-2"}) c.run(host);
  c.pod("t-worker-3")["status"] = base::parse_json(R"({"phase": "Pending", "conditions": [{"type": "PodScheduled",
      "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient cpu.",
      "lastTransitionTime": "2026-01-01T00:00:00Z"}]})")
                                      .value();
  c.settle();
  c.report = c.make_report(contract::JobStage::kRendezvous, 0);
  c.settle();
  EXPECT_EQ(c.phase(), "Starting") << "no step is taken";
  EXPECT_EQ(c.condition("PodsReady"), "False");
  EXPECT_TRUE(contains(c.condition_message("PodsReady"), "t-worker-3-1 Unschedulable: 0/3 nodes"))
      << c.condition_message("PodsReady");
  EXPECT_EQ(c.status()["workers"]["readyText"], "3/4");
  c.advance(119).settle();
  EXPECT_NE(c.condition_reason("PodsReady"), "GangIncomplete");
  ASSERT_EQ(c.step().requeue_after, std::chrono::seconds(1)) << "it wakes by itself";
  c.advance(1).settle();
  EXPECT_EQ(c.condition_reason("PodsReady"), "GangIncomplete");
  EXPECT_TRUE(c.has_event("GangIncomplete"));
  c.advance(3600).settle();
  EXPECT_EQ(c.count("delete"), 0);
  EXPECT_EQ(c.count("create Pod"), 5);
  EXPECT_EQ(restarts(c), 0);
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(OperatorCases, OP_38_user_env_against_ours) {
  const Json spec = contract::short_manifest()["spec"];
  for (const char* place : {"workers", "coordinator"}) {
    Json mine = spec;
    mine[place]["podOptions"]["env"] = Json::array({{{"name", "MASTER_ADDR"}, {"value", "x"}}});
    const std::string errors = errors_of(manifest_of(mine));
    EXPECT_TRUE(contains(errors, std::string("spec.") + place + ".podOptions.env")) << errors;
    EXPECT_TRUE(contains(errors, "MASTER_ADDR")) << errors;
  }
  ClusterFake c(R"({"workers": {
      "podOptions": {"env": [{"name": "LEVEL", "value": "1"}, {"name": "HOME", "value": "/h"}]},
      "overrides": [{"replicas": [1], "podOptions": {"env": [{"name": "LEVEL", "value": "2"}]}}]}})");
  c.settle();
  for (const Json& pod : c.pods) {
    std::set<std::string> names;
    for (const Json& variable : pod["spec"]["containers"][0]["env"])
      EXPECT_TRUE(names.insert(base::string_at(variable, "name")).second) << name_of(pod) << " " << variable;
  }
  EXPECT_EQ(env_of(c.pod("t-worker-1"), "LEVEL"), "2");
  EXPECT_EQ(env_of(c.pod("t-worker-0"), "LEVEL"), "1");
}

TEST(OperatorCases, OP_39_cluster_description_wrong) {
  ClusterFake c(R"({"workers": {"replicas": 3}, "training": {"evaluateEvery": 1}})");
  c.settle();
  std::string cluster;
  for (int rank = 0; rank < 3; ++rank) {
    const Json pod = c.pod("t-worker-" + std::to_string(rank));
    const Json config = base::parse_json(env_of(pod, "TF_CONFIG")).value();
    EXPECT_EQ(config["task"], (Json{{"type", "worker"}, {"index", rank}}));
    ASSERT_EQ(config["cluster"].size(), 1u);
    const Json& addresses = config["cluster"]["worker"];
    ASSERT_EQ(addresses.size(), 3u);
    for (int other = 0; other < 3; ++other) {
      const std::string address = addresses[static_cast<std::size_t>(other)].get<std::string>();
      EXPECT_TRUE(address.starts_with("t-worker-" + std::to_string(other) + ".t.a.svc:")) << address;
    }
    if (rank > 0) {
      EXPECT_EQ(config["cluster"].dump(), cluster) << "the same on all ranks";
    }
    cluster = config["cluster"].dump();
    EXPECT_EQ(config.size(), 2u);
  }
  EXPECT_EQ(env_of(c.pod("t-coordinator-0"), "TF_CONFIG"), "absent");
}

TEST(OperatorCases, OP_40_names_do_not_resolve_yet) {
  ClusterFake c;
  c.settle();
  const auto position = [&](const std::string& begin) {
    return std::find_if(c.log.begin(), c.log.end(), [&](const std::string& line) { return line.starts_with(begin); }) -
           c.log.begin();
  };
  EXPECT_LT(position("create Service"), position("create Pod"));
  ASSERT_EQ(c.services.size(), 1u);
  const Json& service = c.services[0]["spec"];
  EXPECT_EQ(service["clusterIP"], "None");
  EXPECT_EQ(service["publishNotReadyAddresses"], true);
  EXPECT_EQ(service["selector"],
            (Json{{contract::kLabelJobUid, c.job.meta.uid}, {contract::kLabelCurrent, "true"}}));
  c.run("t-worker-0").settle().advance(20).settle();
  EXPECT_EQ(c.phase(), "Starting");
  c.run_all().settle().join_all();
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(restarts(c), 0);
  EXPECT_EQ(c.count("create Pod"), 5);
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(OperatorCases, OP_41_deleted_pod_is_not_noticed) {
  ClusterFake c = running();
  c.keep_deleted = true;
  const std::set<std::string> before = pod_uids(c);
  const Json old_pod = c.pod("t-worker-1");
  c.delete_pod("t-worker-1").settle();
  const Json& next = c.pod("t-worker-1");
  EXPECT_EQ(name_of(next), "t-worker-1-2") << "before the old one has gone";
  EXPECT_EQ(next["spec"]["hostname"], old_pod["spec"]["hostname"]);
  EXPECT_FALSE(before.contains(uid_of(next)));
  EXPECT_EQ(restarts(c), 1);
  EXPECT_EQ(counted(c), 0);
  c.end_deleted().settle().run_all().settle().join_all(60);
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(restarts(c), 1);
  EXPECT_EQ(c.attempt(), 1);
  EXPECT_EQ(c.count("create Pod"), 6);
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(OperatorCases, OP_42_one_pod_down_restarts_all) {
  ClusterFake c = running();
  const auto uids_of = [&](const std::vector<std::string>& hosts) {
    std::vector<std::string> uids;
    for (const std::string& host : hosts) uids.push_back(uid_of(c.pod(host)));
    return uids;
  };
  const std::vector<std::string> healthy = {"t-coordinator-0", "t-worker-2", "t-worker-3"};
  const auto before = uids_of(healthy);
  const std::string first = uid_of(c.pod("t-worker-0"));
  c.exit("t-worker-1", 137).settle().run_all().settle().join_all(20);
  EXPECT_EQ(uid_of(c.pod("t-worker-0")), first);
  const std::string second = uid_of(c.pod("t-worker-1"));
  c.advance(30).exit("t-worker-0", 137).settle();
  c.advance(5).settle().run_all().settle().join_all(30);
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(uids_of(healthy), before);
  EXPECT_EQ(uid_of(c.pod("t-worker-1")), second);
  EXPECT_EQ(c.attempt(), 1);
  EXPECT_EQ(restarts(c), 2);
  EXPECT_EQ(c.broken, kNothingBroken);
}

// The coordinator too: its workers wait for the next one, and are not touched.
TEST(OperatorCases, OP_52_a_killed_coordinator_takes_nobody_along) {
  ClusterFake c = running();
  std::set<std::string> workers = pod_uids(c);
  workers.erase(uid_of(c.pod("t-coordinator-0")));
  c.join_all(50);
  c.exit("t-coordinator-0", 137).settle();
  EXPECT_EQ(name_of(c.pod("t-coordinator-0")), "t-coordinator-0-2");
  c.run_all().settle().join_all(54);
  EXPECT_EQ(c.phase(), "Running");
  for (const std::string& uid : workers) EXPECT_TRUE(pod_uids(c).contains(uid));
  // And ten minutes without an operator: whatever was reported meanwhile is shown at its return.
  const int writes = c.count("create") + c.count("delete");
  c.forget().advance(600);
  c.report = c.make_report(contract::JobStage::kRunning, 90);
  c.settle();
  EXPECT_EQ(c.status()["progress"]["step"], 90);
  EXPECT_LE(c.count("create") + c.count("delete"), writes + 1) << "the key, asked for again";
  EXPECT_EQ(restarts(c), 1);
  EXPECT_EQ(c.broken, kNothingBroken);
}

}  // namespace
}  // namespace evenkeel::oper
