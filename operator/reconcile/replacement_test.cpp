// Scope Worker as timelines: a pod that fails, is deleted or lies on a lost node is replaced alone; no other
// pod is touched; the size may change while the job runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "contract/env.h"
#include "contract/labels.h"
#include "operator/reconcile/cluster_fake.h"

namespace evenkeel::oper {
namespace {

using contract::JobStage;

const std::vector<std::string> kNothingBroken;
constexpr char kScalable[] = R"({"workers": {"minReplicas": 2, "maxReplicas": 8}})";

ClusterFake running(const std::string& patch = "{}") {
  ClusterFake cluster(patch);
  cluster.settle().run_all().settle().join_all();
  cluster.log.clear();
  return cluster;
}

std::string name_of(const Json& object) {
  return base::string_at(base::child(object, "metadata"), "name");
}

std::set<std::string> pod_names(const ClusterFake& c) {
  std::set<std::string> names;
  for (const Json& pod : c.pods) names.insert(name_of(pod));
  return names;
}

std::set<std::string> uids_but(const ClusterFake& c, const std::string& host_name) {
  std::set<std::string> uids;
  for (const Json& pod : c.pods) {
    if (!name_of(pod).starts_with(host_name + "-")) uids.insert(pod["metadata"]["uid"].get<std::string>());
  }
  return uids;
}

std::string env_of(const Json& pod, const std::string& name) {
  for (const Json& variable : pod["spec"]["containers"][0]["env"]) {
    if (variable["name"] == name) return base::string_at(variable, "value");
  }
  return "absent";
}

std::int64_t total(const ClusterFake& c) {
  return base::int_at(base::child(c.status(), "restarts"), "total");
}
std::int64_t counted(const ClusterFake& c) {
  return base::int_at(base::child(c.status(), "restarts"), "countedTowardsMax");
}

TEST(Replacement, a_failed_worker_is_replaced_alone_and_at_once) {
  ClusterFake c = running();
  const auto others = uids_but(c, "t-worker-2");
  c.exit("t-worker-2", 70).settle();
  EXPECT_EQ(c.attempt(), 1);
  EXPECT_EQ(c.status()["incarnation"], 2);
  EXPECT_EQ(c.phase(), "Restarting");
  EXPECT_EQ(total(c), 1);
  EXPECT_EQ(counted(c), 1);
  ASSERT_GE(c.log.size(), 5u);
  EXPECT_EQ(c.log[0], "status Restarting");
  EXPECT_EQ(c.log[1], "patch Pod t-worker-2-1");
  EXPECT_EQ(c.log[2], "delete Pod t-worker-2-1");
  EXPECT_EQ(c.log[3].rfind("create Secret", 0), 0u) << "whether it is still there";
  EXPECT_EQ(c.log[4], "create Pod t-worker-2-2");
  EXPECT_EQ(c.count("create Pod"), 1);
  EXPECT_EQ(c.count("delete"), 1);
  EXPECT_EQ(env_of(c.pod("t-worker-2"), "EVENKEEL_INCARNATION"), "2");
  EXPECT_EQ(env_of(c.pod("t-worker-2"), "RANK"), "2");
  EXPECT_EQ(c.pod("t-worker-2")["spec"]["hostname"], "t-worker-2");
  EXPECT_EQ(c.pod("t-worker-2")["spec"]["volumes"], c.pod("t-worker-1")["spec"]["volumes"]);
  c.run_all().settle();
  EXPECT_EQ(c.phase(), "Restarting") << "the report is older than the replacement";
  c.join_all();
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(c.condition("Restarting"), "False");
  EXPECT_EQ(uids_but(c, "t-worker-2"), others);
  EXPECT_FALSE(c.status()["pods"].contains("replaced"));
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Replacement, the_survivors_go_on_and_their_time_counts) {
  ClusterFake c = running();
  c.exit("t-worker-2", 70).settle();
  c.report = c.make_report(JobStage::kRunning, 40);
  c.report->productive_seconds = {{"productive", 1.0}};
  c.advance(10).settle();
  EXPECT_EQ(c.phase(), "Restarting");
  EXPECT_EQ(c.status()["progress"]["step"], 40);
  EXPECT_EQ(c.status()["time"]["productiveSeconds"], 10);
}

TEST(Replacement, a_worker_that_dies_twice_counts_twice_and_waits_the_second_time) {
  ClusterFake c = running();
  c.exit("t-worker-1", 70).settle().run_all().settle();
  c.exit("t-worker-1", 70).settle();
  EXPECT_EQ(total(c), 2);
  EXPECT_EQ(counted(c), 2);
  EXPECT_EQ(c.status()["restarts"]["nextRetryTime"], "2026-01-01T00:00:01Z");
  EXPECT_EQ(c.condition_reason("PodsReady"), "BackOff");
  EXPECT_FALSE(c.has_pod("t-worker-1"));
  EXPECT_EQ(*c.step().requeue_after, std::chrono::seconds(1));
  c.advance(1).settle();
  EXPECT_EQ(name_of(c.pod("t-worker-1")), "t-worker-1-3");
  c.run_all().settle().join_all();
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_FALSE(c.status()["restarts"].contains("nextRetryTime"));
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Replacement, two_that_die_in_one_incident_are_one_restart) {
  ClusterFake c = running();
  c.exit("t-worker-1", 137).settle();
  c.exit("t-worker-3", 137).settle();
  c.erase_pod("t-worker-0").settle();
  EXPECT_EQ(total(c), 1);
  EXPECT_EQ(counted(c), 1);
  EXPECT_EQ(c.status()["incarnation"], 4);
  EXPECT_EQ(pod_names(c), (std::set<std::string>{"t-coordinator-0-1", "t-worker-0-4", "t-worker-1-2",
                                                 "t-worker-2-1", "t-worker-3-3"}));
  c.run_all().settle().join_all();
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Replacement, the_coordinator_comes_back_in_the_same_attempt) {
  ClusterFake c = running();
  const auto others = uids_but(c, "t-coordinator-0");
  c.exit("t-coordinator-0", 137).settle();
  EXPECT_EQ(c.attempt(), 1);
  EXPECT_EQ(name_of(c.pod("t-coordinator-0")), "t-coordinator-0-2");
  EXPECT_EQ(env_of(c.pod("t-coordinator-0"), "EVENKEEL_INCARNATION"), "2");
  EXPECT_EQ(c.config_maps.size(), 1u);
  c.run_all().settle();
  EXPECT_EQ(c.phase(), "Restarting") << "the last report is of the coordinator that died";
  c.join_all();
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(uids_but(c, "t-coordinator-0"), others);
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Replacement, workers_that_ended_in_peace_are_made_again_if_their_coordinator_did_not) {
  ClusterFake c = running();
  for (int rank = 0; rank < 4; ++rank) c.exit("t-worker-" + std::to_string(rank), 0);
  c.settle();
  EXPECT_EQ(total(c), 0);
  c.exit("t-coordinator-0", 137).settle();
  EXPECT_EQ(total(c), 1);
  EXPECT_EQ(c.pods.size(), 5u);
  for (const Json& pod : c.pods) EXPECT_TRUE(name_of(pod).ends_with("-2")) << name_of(pod);
  c.run_all().settle().join_all();
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Replacement, a_coordinator_that_was_deleted_and_still_finished_is_the_success) {
  ClusterFake c = running();
  c.keep_deleted = true;
  c.delete_pod("t-coordinator-0").settle();
  EXPECT_EQ(name_of(c.pod("t-coordinator-0")), "t-coordinator-0-2");
  for (Json& pod : c.pods) {
    if (name_of(pod) != "t-coordinator-0-1") continue;
    pod["status"]["phase"] = "Succeeded";
    pod["status"]["containerStatuses"] =
        base::parse_json(R"([{"name": "trainer", "state": {"terminated": {"exitCode": 0}}}])").value();
  }
  c.settle();
  EXPECT_EQ(c.phase(), "Succeeded");
}

constexpr char kTwoRanksEach[] = R"({"workers": {"replicas": 2, "devicesPerReplica": 2}})";

TEST(Replacement, a_pod_of_several_ranks_has_joined_when_all_of_them_have) {
  ClusterFake c = running(kTwoRanksEach);
  EXPECT_EQ(c.phase(), "Running");
  const auto others = uids_but(c, "t-worker-1");
  c.exit("t-worker-1", 137).settle().run_all().settle();
  EXPECT_EQ(total(c), 1) << "one pod, one incident, however many ranks it held";
  EXPECT_EQ(env_of(c.pod("t-worker-1"), "EVENKEEL_RANK"), "2");
  c.report = c.make_report(JobStage::kRunning, 12);
  c.report->replicas[3].pod = "t-worker-1-1";  // its predecessor's
  c.report->replicas[3].state = "lost";
  c.settle();
  EXPECT_EQ(c.phase(), "Restarting");
  c.join_all();
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(uids_but(c, "t-worker-1"), others);
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Replacement, a_rank_that_comes_back_in_its_pod_costs_no_pod) {
  ClusterFake c = running(kTwoRanksEach);
  const auto before = pod_names(c);
  c.report = c.make_report(JobStage::kRunning, 12);
  c.report->replicas[3].state = "lost";
  --c.report->joined;
  c.settle().advance(20).settle();
  EXPECT_EQ(c.phase(), "Running");
  c.join_all().advance(3600).settle();
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(total(c), 0);
  EXPECT_EQ(pod_names(c), before);
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Replacement, a_pod_one_of_whose_ranks_does_not_come_back_is_replaced) {
  ClusterFake c = running(kTwoRanksEach);
  c.report = c.make_report(JobStage::kRunning, 12);
  c.report->replicas[3].state = "lost";
  c.settle().advance(51).settle();
  EXPECT_EQ(total(c), 1);
  EXPECT_EQ(name_of(c.pod("t-worker-1")), "t-worker-1-2");
  EXPECT_EQ(name_of(c.pod("t-worker-0")), "t-worker-0-1");
}

TEST(Replacement, a_pod_on_a_lost_node_is_not_waited_for) {
  ClusterFake c = running(R"({"restart": {"maxRestarts": 0}})");
  c.lose_node_of("t-worker-2").settle();
  EXPECT_EQ(name_of(c.pod("t-worker-2")), "t-worker-2-2");
  EXPECT_EQ(total(c), 1);
  EXPECT_EQ(counted(c), 0);
  EXPECT_EQ(c.count("delete Pod"), 0) << "it is on its way already";
  c.run_all().settle().join_all();
  EXPECT_EQ(c.phase(), "Running");
  const std::size_t writes = c.log.size();
  for (int i = 0; i < 10; ++i) c.advance(60).end_deleted().settle();
  EXPECT_EQ(c.log.size(), writes) << "Terminating for ever, and nobody minds";
  for (const Json& pod : c.pods) {
    const bool current = pod["metadata"]["labels"].contains(contract::kLabelCurrent);
    EXPECT_EQ(current, name_of(pod) != "t-worker-2-1");
  }
  c.erase_pod("t-worker-2").settle();  // the successor, by force
  EXPECT_EQ(name_of(c.pod("t-worker-2")), "t-worker-2-3");
  EXPECT_EQ(total(c), 2);
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Replacement, a_pod_deleted_by_force_is_replaced_and_does_not_count) {
  ClusterFake c = running(R"({"restart": {"maxRestarts": 0}})");
  const auto others = uids_but(c, "t-worker-1");
  c.erase_pod("t-worker-1").settle();
  EXPECT_EQ(name_of(c.pod("t-worker-1")), "t-worker-1-2");
  EXPECT_EQ(total(c), 1);
  EXPECT_EQ(counted(c), 0);
  EXPECT_EQ(c.status()["lastFailure"]["reason"], "Gone");
  c.run_all().settle().join_all();
  EXPECT_EQ(uids_but(c, "t-worker-1"), others);
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Replacement, a_successor_that_vanishes_is_not_made_under_the_same_name) {
  ClusterFake c = running();
  c.erase_pod("t-worker-1").settle().erase_pod("t-worker-1").settle();
  EXPECT_FALSE(c.has_pod("t-worker-1")) << "the second time it waits";
  c.advance(1).settle();
  EXPECT_EQ(name_of(c.pod("t-worker-1")), "t-worker-1-3");
  EXPECT_EQ(total(c), 2);
  EXPECT_EQ(counted(c), 0);
  EXPECT_EQ(c.broken, kNothingBroken);
}

// Somebody deletes the Secret of a running job. Old pods and new ones would hold different keys.
TEST(Replacement, a_lost_key_starts_all_pods_again_once) {
  for (const char* patch : {"{}", R"({"restart": {"scope": "Job"}})"}) {
    ClusterFake c = running(patch);
    const std::set<std::string> before = pod_names(c);
    c.secret_exists = false;
    c.settle();
    EXPECT_EQ(c.phase(), "Running") << "nobody needs it";
    EXPECT_EQ(c.attempt(), 1);
    c.exit("t-worker-2", 137).settle().end_deleted().settle();
    EXPECT_EQ(c.attempt(), 2) << patch;
    for (const std::string& name : pod_names(c)) EXPECT_FALSE(before.contains(name)) << name;
    EXPECT_EQ(total(c), 1) << "one incident";
    c.run_all().settle().join_all();
    EXPECT_EQ(c.phase(), "Running");
    EXPECT_EQ(c.broken, kNothingBroken) << patch;
  }
}

// A new operator makes sure that the key is there, and says why it has to begin anew.
TEST(Replacement, a_key_that_a_new_operator_has_to_make_was_lost) {
  ClusterFake c = running();
  c.secret_exists = false;
  c.forget().settle().end_deleted().settle();
  EXPECT_EQ(c.attempt(), 2);
  EXPECT_EQ(base::string_at(c.status()["lastFailure"], "reason"), "KeyLost");
  EXPECT_EQ(counted(c), 0) << "deleted by somebody: a disruption";
  c.run_all().settle().join_all();
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(c.broken, kNothingBroken);
  c.forget().settle();
  EXPECT_EQ(c.attempt(), 2) << "it is there";
}

TEST(Replacement, a_pod_that_is_never_admitted_is_made_again_more_and_more_slowly) {
  ClusterFake c = running(R"({"restart": {"maxRestarts": 0}})");
  c.exit("t-worker-0", 143);
  c.pod("t-worker-0")["status"] = base::parse_json(R"({"phase": "Failed", "reason": "OutOfcpu"})").value();
  c.settle();
  for (int i = 0; i < 3; ++i) {
    c.pod("t-worker-0")["status"] = base::parse_json(R"({"phase": "Failed", "reason": "OutOfcpu"})").value();
    c.settle();
    EXPECT_EQ(*c.step().requeue_after, std::chrono::seconds(1 << i));
    c.advance(1 << i).settle();
  }
  EXPECT_EQ(total(c), 4);
  EXPECT_EQ(counted(c), 0);
}

TEST(Replacement, a_rank_that_always_fails_ends_the_job_at_the_limit) {
  ClusterFake c = running(R"({"restart": {"maxRestarts": 2}})");
  for (int i = 0; i < 3; ++i) c.advance(10).settle().exit("t-worker-1", 70).settle();
  EXPECT_EQ(c.phase(), "Failed");
  EXPECT_EQ(c.condition_reason("Failed"), "MaxRestartsExceeded");
  EXPECT_EQ(total(c), 2);
  EXPECT_EQ(c.count("create Pod t-worker-1"), 2);
  EXPECT_EQ(c.count("create Pod"), 2);
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Replacement, bad_data_ends_the_job_and_nobody_is_replaced) {
  ClusterFake c = running();
  c.exit("t-worker-2", 65).settle();
  EXPECT_EQ(c.phase(), "Failed");
  EXPECT_EQ(c.status()["lastFailure"]["exitCode"], 65);
  EXPECT_EQ(c.count("create"), 0);
  ClusterFake late = running();
  late.exit("t-worker-0", 137).settle().exit("t-worker-2", 65).settle();
  EXPECT_EQ(late.phase(), "Failed");
}

TEST(Replacement, the_coordinator_may_end_the_job_too) {
  ClusterFake c = running();
  c.exit("t-coordinator-0", 65).settle();
  EXPECT_EQ(c.phase(), "Failed");
  EXPECT_EQ(c.count("create"), 0);
}

TEST(Replacement, suspend_in_an_incident_takes_all_pods_away_and_resume_starts_afresh) {
  ClusterFake c = running();
  c.keep_deleted = true;
  c.lose_node_of("t-worker-3").exit("t-worker-1", 70).settle();
  c.patch_spec(R"({"suspend": true})").settle();
  EXPECT_EQ(c.phase(), "Suspended");
  EXPECT_FALSE(c.status().contains("pods"));
  c.advance(70).end_deleted().settle();
  EXPECT_EQ(c.condition("Suspended"), "True");
  EXPECT_EQ(c.pods.size(), 1u) << "the one on the lost node";
  c.pods.clear();
  c.patch_spec(R"({"suspend": false})").settle().run_all().settle().join_all();
  EXPECT_EQ(c.attempt(), 2);
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(total(c), 1);
  EXPECT_EQ(c.status()["pods"]["made"], 4);
  for (const Json& pod : c.pods) EXPECT_TRUE(name_of(pod).ends_with("-3")) << name_of(pod);
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Replacement, a_pod_that_vanished_before_all_were_made_is_made_under_its_name) {
  ClusterFake c;
  c.refuse_creates["Pod/t-worker-3-1"] = "exceeded quota";
  c.settle().erase_pod("t-worker-1").settle();
  EXPECT_EQ(name_of(c.pod("t-worker-1")), "t-worker-1-1");
  EXPECT_EQ(total(c), 0);
}

TEST(Replacement, a_successor_that_vanishes_before_all_were_made_has_a_name_of_its_own) {
  ClusterFake c;
  c.refuse_creates["Pod/t-worker-3-1"] = "exceeded quota";
  c.settle().run_all().exit("t-worker-1", 70).settle();
  EXPECT_EQ(name_of(c.pod("t-worker-1")), "t-worker-1-2");
  c.erase_pod("t-worker-1").settle().advance(1).settle();
  c.refuse_creates.clear();
  c.advance(30).settle();
  EXPECT_EQ(name_of(c.pod("t-worker-1")), "t-worker-1-3");
  EXPECT_EQ(name_of(c.pod("t-worker-3")), "t-worker-3-1");
  c.run_all().settle().join_all();
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Replacement, at_rest_nothing_is_written_and_an_incident_costs_few_writes) {
  ClusterFake c = running(kScalable);
  c.exit("t-worker-1", 70).settle().run_all().settle().join_all();
  EXPECT_LE(c.count("status"), 6);
  const std::size_t writes = c.log.size();
  for (int i = 0; i < 10; ++i) c.advance(30).settle();
  EXPECT_EQ(c.log.size(), writes);
}

TEST(Replacement, a_pod_that_runs_but_is_not_heard_is_replaced_after_a_while) {
  ClusterFake c = running();
  c.report->replicas[2].state = "lost";
  c.settle();
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(*c.step().requeue_after, std::chrono::seconds(50));
  c.advance(49).settle();
  EXPECT_EQ(total(c), 0);
  c.advance(1).settle();
  EXPECT_EQ(total(c), 1);
  EXPECT_EQ(counted(c), 1);
  EXPECT_EQ(c.status()["lastFailure"]["reason"], "Unheard");
  EXPECT_EQ(name_of(c.pod("t-worker-2")), "t-worker-2-2");
  EXPECT_EQ(c.count("delete Pod t-worker-2-1"), 1);
  c.run_all().settle().join_all();
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_FALSE(c.status()["pods"].contains("lost"));
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Replacement, a_pod_that_is_not_heard_because_its_node_is_silent_does_not_count) {
  ClusterFake c = running();
  c.pod("t-worker-2")["status"]["conditions"] = Json::array({{{"type", "Ready"}, {"status", "False"}}});
  c.report->replicas[2].state = "lost";
  c.settle().advance(50).settle();
  EXPECT_EQ(total(c), 1);
  EXPECT_EQ(counted(c), 0);
  EXPECT_EQ(c.status()["lastFailure"]["reason"], "Unheard");
  EXPECT_EQ(name_of(c.pod("t-worker-2")), "t-worker-2-2");
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Replacement, a_pod_that_is_heard_again_stays) {
  ClusterFake c = running();
  c.report->replicas[2].state = "lost";
  c.settle().advance(40).settle();
  c.report->replicas[2].state = "stepping";
  c.settle().advance(40).settle();
  c.report->replicas[2].state = "lost";
  c.settle().advance(40).settle();
  EXPECT_EQ(total(c), 0);
  EXPECT_EQ(c.count("delete"), 0);
}

TEST(Replacement, nobody_is_unheard_while_the_coordinator_is_away) {
  ClusterFake c = running();
  c.report->replicas[2].state = "lost";
  c.settle().erase_pod("t-coordinator-0").settle().advance(100).settle();
  EXPECT_EQ(c.count("create Pod"), 1);
  EXPECT_EQ(total(c), 1);
}

TEST(Replacement, a_wiped_status_takes_the_pods_as_they_are) {
  ClusterFake c = running();
  c.exit("t-worker-1", 70).settle().run_all().settle().join_all();
  const auto before = pod_names(c);
  c.job.status_json.erase("pods");
  c.settle();
  EXPECT_EQ(pod_names(c), before);
  c.job.status_json["incarnation"] = 1;
  c.exit("t-worker-1", 70).settle().advance(1).settle();
  EXPECT_EQ(name_of(c.pod("t-worker-1")), "t-worker-1-3") << "never an incarnation that there was";
}

TEST(Replacement, thousands_that_die_at_once_are_one_incident_and_all_come_back) {
  ClusterFake c(R"({"workers": {"replicas": 1000}})");
  c.settle().run_all().settle().join_all();
  for (int rank = 0; rank < 1000; ++rank) c.exit("t-worker-" + std::to_string(rank), 137);
  c.settle().run_all().settle().join_all();
  EXPECT_EQ(total(c), 1);
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(c.pods.size(), 1001u);
  EXPECT_EQ(c.broken, kNothingBroken);
}

// ---- size

TEST(Size, a_fixed_job_has_no_wanted_file) {
  ClusterFake c = running();
  EXPECT_EQ(c.config_maps.size(), 1u);
  EXPECT_EQ(env_of(c.pod("t-coordinator-0"), contract::kEnvWantedFile), "absent");
}

TEST(Size, the_coordinator_of_a_scalable_job_mounts_the_wanted_number) {
  ClusterFake c = running(kScalable);
  ASSERT_EQ(c.config_maps.size(), 2u);
  EXPECT_EQ(name_of(c.config_maps[1]), "t-wanted-1");
  EXPECT_EQ(c.config_maps[1]["data"]["replicas"], "4");
  EXPECT_EQ(env_of(c.pod("t-coordinator-0"), contract::kEnvWantedFile), "/etc/evenkeel/wanted/replicas");
  EXPECT_EQ(env_of(c.pod("t-worker-0"), contract::kEnvWantedFile), "absent");
  EXPECT_EQ(c.pod("t-coordinator-0")["metadata"]["annotations"][contract::kAnnotationWanted], "4");
}

TEST(Size, growth_makes_the_new_ranks_and_touches_nobody_else) {
  ClusterFake c = running(kScalable);
  const auto before = pod_names(c);
  c.patch_spec(R"({"workers": {"replicas": 6}})").settle();
  EXPECT_EQ(c.attempt(), 1);
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(total(c), 0);
  auto expected = before;
  expected.insert({"t-worker-4-2", "t-worker-5-2"});
  EXPECT_EQ(pod_names(c), expected);
  EXPECT_EQ(c.config_maps[1]["data"]["replicas"], "6");
  EXPECT_EQ(c.pod("t-coordinator-0")["metadata"]["annotations"][contract::kAnnotationWanted], "6");
  EXPECT_LT(std::ranges::find(c.log, "patch ConfigMap t-wanted-1"),
            std::ranges::find(c.log, "create Pod t-worker-4-2"));
  EXPECT_TRUE(c.has_event("Rescaled"));
  EXPECT_EQ(c.count("delete"), 0);
  c.run_all().settle().join_all();
  EXPECT_EQ(c.status()["pods"]["made"], 6);
  EXPECT_EQ(c.status()["workers"]["readyText"], "6/6");
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Size, workers_that_are_wanted_no_more_go_when_the_coordinator_has_let_them_go) {
  ClusterFake c = running(kScalable);
  c.patch_spec(R"({"workers": {"replicas": 2}})");
  c.report->ranks = 4;  // it has not read the new number, so the one that it misses may still come
  const std::vector<contract::ReplicaReport> all = c.report->replicas;
  c.report->replicas.pop_back();
  c.settle();
  EXPECT_EQ(c.config_maps[1]["data"]["replicas"], "2");
  EXPECT_EQ(c.count("delete"), 0);
  c.report->replicas = all;
  c.report->ranks = 2;  // it has, and they still take part
  c.settle();
  EXPECT_EQ(c.count("delete"), 0);
  c.report->replicas.resize(3);
  c.settle();
  EXPECT_EQ(c.count("delete"), 1);
  EXPECT_TRUE(c.has_pod("t-worker-2"));
  EXPECT_FALSE(c.has_pod("t-worker-3"));
  c.exit("t-worker-2", 0).settle();
  EXPECT_FALSE(c.has_pod("t-worker-2")) << "it has ended by itself";
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(total(c), 0);
  EXPECT_EQ(c.status()["workers"]["readyText"], "2/2");
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Size, a_worker_that_fails_on_its_way_out_is_no_incident) {
  ClusterFake c = running(kScalable);
  c.report->ranks = 2;
  c.patch_spec(R"({"workers": {"replicas": 2}})").settle();
  c.exit("t-worker-3", 75).settle();
  EXPECT_EQ(total(c), 0);
  EXPECT_EQ(c.phase(), "Running");
}

TEST(Size, a_rank_that_comes_back_gets_a_new_incarnation) {
  ClusterFake c = running(kScalable);
  c.patch_spec(R"({"workers": {"replicas": 2}})").settle();  // the report still names all four
  EXPECT_EQ(c.count("delete"), 0);
  c.patch_spec(R"({"workers": {"replicas": 3}})").settle();
  EXPECT_EQ(name_of(c.pod("t-worker-2")), "t-worker-2-2");
  EXPECT_EQ(name_of(c.pod("t-worker-3")), "t-worker-3-1") << "not let go yet";
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Size, growth_waits_for_the_pods_of_the_last_change) {
  ClusterFake c = running(kScalable);
  c.refuse_creates["Pod/t-worker-4-2"] = "exceeded quota";
  c.patch_spec(R"({"workers": {"replicas": 5}})").settle();
  c.patch_spec(R"({"workers": {"replicas": 6}})").settle();
  EXPECT_EQ(c.status()["pods"]["wanted"], 5);
  c.refuse_creates.clear();
  c.advance(30).settle();
  EXPECT_EQ(c.status()["pods"]["wanted"], 6);
  EXPECT_EQ(name_of(c.pod("t-worker-4")), "t-worker-4-2");
  EXPECT_EQ(name_of(c.pod("t-worker-5")), "t-worker-5-3");
  EXPECT_EQ(c.broken, kNothingBroken);
}

Json without_a_node() {
  return base::parse_json(R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
      "reason": "Unschedulable", "message": "0/2 nodes are available: 2 Insufficient cpu."}]})")
      .value();
}

TEST(Size, a_scalable_job_starts_with_the_least_and_an_other_one_does_not) {
  for (const bool scalable : {true, false}) {
    ClusterFake c(scalable ? kScalable : "{}");
    c.settle().run_all();
    for (const char* name : {"t-worker-2", "t-worker-3"}) c.pod(name)["status"] = without_a_node();
    c.settle();
    c.report = c.make_report(JobStage::kRunning, 1);
    c.settle();
    EXPECT_EQ(c.phase(), scalable ? "Running" : "Starting");
    if (!scalable) continue;
    EXPECT_EQ(c.condition_reason("Running"), "EnoughRanksJoined");
    EXPECT_NE(c.condition_message("Running").find("2 of 4"), std::string::npos)
        << c.condition_message("Running");
    EXPECT_EQ(c.status()["workers"]["readyText"], "2/4");
  }
}

TEST(Size, an_incident_of_a_scalable_job_is_over_if_the_successor_finds_no_node) {
  ClusterFake c = running(kScalable);
  c.lose_node_of("t-worker-3").settle();
  c.join_all();
  EXPECT_EQ(c.phase(), "Restarting");
  c.pod("t-worker-3")["status"] = without_a_node();
  c.settle();
  EXPECT_EQ(c.phase(), "Running");
  c.run("t-worker-3").settle().join_all();
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(total(c), 1);
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Size, the_next_attempt_begins_with_the_size_of_the_day) {
  ClusterFake c = running(kScalable);
  c.patch_spec(R"({"workers": {"replicas": 6}})").settle().run_all().settle().join_all();
  c.patch_spec(R"({"suspend": true})").settle();
  EXPECT_TRUE(c.config_maps.empty());
  c.patch_spec(R"({"suspend": false})").settle();
  EXPECT_EQ(c.pods.size(), 7u);
  EXPECT_EQ(name_of(c.config_maps[1]), "t-wanted-2");
  EXPECT_EQ(c.config_maps[1]["data"]["replicas"], "6");
  EXPECT_EQ(c.broken, kNothingBroken);
}

}  // namespace
}  // namespace evenkeel::oper
