#include <gtest/gtest.h>

#include <algorithm>

#include "contract/labels.h"
#include "operator/reconcile/cluster_fake.h"

namespace evenkeel::oper {
namespace {

using contract::JobStage;

const std::vector<std::string> kNothingBroken;

// All pods go together; replacement_test.cpp has the other scope.
ClusterFake running(const std::string& patch = "{}") {
  Json spec = {{"restart", {{"scope", "Job"}}}};
  spec.merge_patch(base::parse_json(patch).value());
  ClusterFake cluster(spec.dump());
  cluster.settle().run_all().settle().join_all();
  return cluster;
}

TEST(Reconcile, creates_names_before_pods_and_all_pods_at_once) {
  ClusterFake c;
  c.settle();
  const std::vector<std::string> expected = {"status Pending",
                                             "create Secret t-key-01234567",
                                             "create Service t",
                                             "create ConfigMap t-config-1",
                                             "create Pod t-coordinator-0-1",
                                             "create Pod t-worker-0-1",
                                             "create Pod t-worker-1-1",
                                             "create Pod t-worker-2-1",
                                             "create Pod t-worker-3-1"};
  ASSERT_GE(c.log.size(), expected.size());
  EXPECT_EQ(std::vector<std::string>(c.log.begin(), c.log.begin() + static_cast<long>(expected.size())),
            expected);
  EXPECT_EQ(c.attempt(), 1);
  EXPECT_EQ(c.condition("Accepted"), "True");
  EXPECT_EQ(c.condition("Running"), "False");
  EXPECT_TRUE(c.has_event("Accepted"));
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Reconcile, phase_tells_the_truth_from_pending_to_running) {
  ClusterFake c;
  c.settle();
  EXPECT_EQ(c.phase(), "Pending");
  EXPECT_EQ(c.status()["workers"]["readyText"], "0/4");
  c.run("t-worker-0").run("t-worker-1").settle();
  EXPECT_EQ(c.phase(), "Starting");
  EXPECT_EQ(c.status()["workers"]["readyText"], "2/4");
  c.run_all().settle();
  EXPECT_EQ(c.phase(), "Starting");
  EXPECT_EQ(c.condition("PodsReady"), "True");
  EXPECT_EQ(c.condition("Running"), "False");
  c.join_all();
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(c.condition("Running"), "True");
  EXPECT_TRUE(c.has_event("RendezvousComplete"));
}

TEST(Reconcile, a_remedy_is_told_once_also_by_a_new_operator) {
  ClusterFake c;
  c.settle().run_all();
  c.join_all();
  c.report->diagnosis.remedies = {
      {"shares by speed, for rank 3", 0.4, std::nullopt, contract::RemedyState::kApplied, std::nullopt}};
  const auto told = [&] {
    return std::count_if(c.events.begin(), c.events.end(), [](const auto& e) { return e.reason == "RemedyApplied"; });
  };
  c.settle();
  EXPECT_EQ(told(), 1);
  c.report->progress.step = 99;
  c.report->diagnosis.remedies[0].measured_gain = 0.38;
  c.settle();  // nothing is remembered but the status: as after a restart
  EXPECT_EQ(told(), 1);
  EXPECT_FALSE(c.has_event("RemedyReverted"));
  c.report->diagnosis.remedies[0].state = contract::RemedyState::kReverted;
  c.settle();
  EXPECT_TRUE(c.has_event("RemedyReverted"));
}

TEST(Reconcile, three_of_four_joined_is_not_running) {
  ClusterFake c;
  c.settle().run_all();
  c.report = c.make_report(JobStage::kRunning, 1);
  c.report->joined = 3;
  c.report->replicas[3].state = "lost";
  c.settle();
  EXPECT_EQ(c.phase(), "Starting");
  ClusterFake job(R"({"restart": {"scope": "Job"}})");
  job.settle().run_all();
  job.report = job.make_report(JobStage::kRunning, 1);
  job.report->joined = 3;
  job.settle();
  EXPECT_EQ(job.phase(), "Starting");
}

TEST(Reconcile, a_report_of_another_attempt_says_nothing) {
  ClusterFake c;
  c.settle().run_all();
  c.report = c.make_report(JobStage::kRunning, 50);
  c.report->attempt = 7;
  c.settle();
  EXPECT_EQ(c.phase(), "Starting");
  EXPECT_FALSE(c.status().contains("progress"));
}

TEST(Reconcile, at_rest_nothing_is_written) {
  ClusterFake c = running();
  const std::size_t writes = c.log.size();
  for (int i = 0; i < 10; ++i) c.advance(30).settle();
  EXPECT_EQ(c.log.size(), writes);
}

TEST(Reconcile, progress_alone_is_not_urgent) {
  ClusterFake c = running();
  c.report = c.make_report(JobStage::kRunning, 11);
  const Decision decision = c.step();
  ASSERT_TRUE(decision.status.has_value());
  EXPECT_FALSE(decision.status_is_urgent);
  EXPECT_EQ((*decision.status)["progress"]["step"], 11);
  EXPECT_EQ((*decision.status)["progress"]["eta"], "1m30s");
}

TEST(Reconcile, succeeds_when_the_coordinator_ends_with_zero_and_keeps_its_last_numbers) {
  ClusterFake c = running();
  c.report = c.make_report(JobStage::kRunning, 60);
  contract::JobReport last = c.make_report(JobStage::kCompleted, 100);
  c.exit("t-coordinator-0", 0, contract::termination_message(last)).settle();
  EXPECT_EQ(c.phase(), "Succeeded");
  EXPECT_EQ(c.condition("Complete"), "True");
  EXPECT_EQ(c.condition("Running"), "False");
  EXPECT_EQ(c.status()["progress"]["step"], 100);
  EXPECT_EQ(c.status()["progress"]["percent"], 100);
  ASSERT_EQ(c.status()["replicas"].size(), 4u);
  EXPECT_EQ(c.status()["replicas"][3]["consumed"], 6400);
  EXPECT_TRUE(c.status().contains("completionTime"));
  EXPECT_TRUE(c.has_event("Completed"));
}

TEST(Reconcile, a_job_that_ended_before_anyone_asked_keeps_its_numbers_too) {
  ClusterFake c;
  c.settle().run_all().settle();
  c.exit("t-coordinator-0", 0, contract::termination_message(c.make_report(JobStage::kCompleted, 100)))
      .settle();
  EXPECT_EQ(c.phase(), "Succeeded");
  EXPECT_EQ(c.status()["progress"]["samples"], 25600);
}

TEST(Reconcile, success_is_seen_before_workers_that_end_oddly) {
  ClusterFake c = running();
  c.exit("t-worker-2", 75).exit("t-coordinator-0", 0).settle();
  EXPECT_EQ(c.phase(), "Succeeded");
}

TEST(Reconcile, workers_may_end_by_themselves_after_success) {
  ClusterFake c = running();
  c.exit("t-coordinator-0", 0).settle();
  EXPECT_EQ(c.count("delete Pod"), 0);
  for (int rank = 0; rank < 3; ++rank) c.exit("t-worker-" + std::to_string(rank), 0);
  c.advance(11).settle();
  EXPECT_EQ(c.count("delete Pod"), 1);
  EXPECT_EQ(c.pods.size(), 4u);
  EXPECT_EQ(c.status()["workers"]["succeeded"], 3);
}

TEST(Reconcile, permanent_exit_fails_in_one_write) {
  ClusterFake c = running();
  c.exit("t-worker-2", 65, R"({"reason":"label 17 is out of range","exitCode":65,"step":3})");
  const Decision decision = c.step();
  ASSERT_TRUE(decision.status.has_value());
  EXPECT_EQ(c.phase(), "Failed");
  EXPECT_EQ(c.condition("Failed"), "True");
  EXPECT_EQ(c.condition("Restarting"), "False");
  EXPECT_TRUE(c.status().contains("completionTime"));
  EXPECT_NE(c.condition_message("Failed").find("t-worker-2-1"), std::string::npos);
  EXPECT_NE(c.condition_message("Failed").find("65"), std::string::npos);
  EXPECT_NE(c.condition_message("Failed").find("restart.rules[0]"), std::string::npos);
  EXPECT_NE(c.condition_message("Failed").find("label 17"), std::string::npos);
  EXPECT_EQ(c.status()["restarts"]["total"], 0);
  EXPECT_EQ(c.status()["lastFailure"]["exitCode"], 65);
  const int creates = c.count("create");
  c.settle();
  EXPECT_EQ(c.count("create"), creates);
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Reconcile, counters_are_persistent_before_the_first_delete_of_a_restart) {
  ClusterFake c = running();
  c.log.clear();
  c.exit("t-worker-2", 70).settle();
  ASSERT_GE(c.log.size(), 2u);
  EXPECT_EQ(c.log[0], "status Restarting");
  EXPECT_TRUE(c.log[1].starts_with("delete Pod"));
  EXPECT_EQ(c.attempt(), 2);
  EXPECT_EQ(c.status()["restarts"]["total"], 1);
  EXPECT_EQ(c.status()["restarts"]["countedTowardsMax"], 1);
  EXPECT_TRUE(c.has_pod("t-worker-2"));
  EXPECT_EQ(c.pod("t-worker-2")["metadata"]["name"], "t-worker-2-2");
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Reconcile, attempts_do_not_overlap) {
  ClusterFake c = running();
  c.keep_deleted = true;
  c.exit("t-worker-2", 70).settle();
  EXPECT_EQ(c.count("delete Pod"), 5);
  EXPECT_EQ(c.count("create Pod"), 5);
  EXPECT_EQ(c.condition_reason("PodsReady"), "Terminating");
  c.advance(20).settle();
  EXPECT_EQ(c.count("create Pod"), 5);
  c.end_deleted().settle();
  EXPECT_EQ(c.count("create Pod"), 10);
  EXPECT_EQ(c.status()["restarts"]["total"], 1);
  EXPECT_EQ(c.config_maps.size(), 1u);
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Reconcile, an_incident_lasts_until_all_ranks_have_joined_again) {
  ClusterFake c = running();
  c.exit("t-worker-2", 70).settle().run_all().settle();
  EXPECT_EQ(c.phase(), "Restarting");
  EXPECT_EQ(c.condition("Restarting"), "True");
  c.join_all();
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_EQ(c.condition("Restarting"), "False");
}

TEST(Reconcile, the_third_incident_uses_up_two_restarts) {
  ClusterFake c = running(R"({"restart": {"maxRestarts": 2}})");
  for (int i = 0; i < 3; ++i) {
    c.exit("t-worker-1", 70).settle();
    if (c.phase() == "Failed") break;
    c.advance(2).settle().run_all().settle().join_all();
  }
  EXPECT_EQ(c.phase(), "Failed");
  EXPECT_EQ(c.condition_reason("Failed"), "MaxRestartsExceeded");
  EXPECT_EQ(c.status()["restarts"]["total"], 2);
  EXPECT_EQ(c.status()["restarts"]["countedTowardsMax"], 2);
  EXPECT_EQ(c.count("create Pod t-worker-1"), 3);
  EXPECT_EQ(c.status()["lastFailure"]["rank"], 1);
  EXPECT_EQ(c.status()["lastFailure"]["exitCode"], 70);
  EXPECT_EQ(c.status()["lastFailure"]["attempt"], 3);
  EXPECT_EQ(c.status()["lastFailure"]["node"], "node-1");
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Reconcile, the_second_restart_waits_and_says_until_when) {
  ClusterFake c = running();
  c.exit("t-worker-1", 70).settle().run_all().settle().join_all();
  c.exit("t-worker-1", 70).settle();
  EXPECT_EQ(c.status()["restarts"]["nextRetryTime"], "2026-01-01T00:00:01Z");
  EXPECT_EQ(c.count("create Pod"), 10);
  const Decision waiting = c.step();
  ASSERT_TRUE(waiting.requeue_after.has_value());
  EXPECT_EQ(*waiting.requeue_after, std::chrono::seconds(1));
  c.advance(1).settle();
  EXPECT_EQ(c.count("create Pod"), 15);
}

TEST(Reconcile, disruptions_do_not_count) {
  struct Case {
    const char* what;
    const char* status;
  };
  const Case cases[] = {
      {"eviction",
       R"({"phase":"Failed","reason":"Evicted","conditions":[{"type":"DisruptionTarget","status":"True"}]})"},
      {"node shutdown with condition",
       R"({"phase":"Failed","reason":"Terminated","message":"Pod was terminated in response to imminent node shutdown.",
           "conditions":[{"type":"DisruptionTarget","status":"True"}],
           "containerStatuses":[{"name":"trainer","state":{"terminated":{"exitCode":143}}}]})"},
      {"node shutdown without condition",
       R"({"phase":"Failed","reason":"NodeShutdown","containerStatuses":[{"name":"trainer","state":{"terminated":{"exitCode":143}}}]})"},
      {"never admitted", R"({"phase":"Failed","reason":"OutOfcpu"})"},
  };
  for (const Case& test : cases) {
    ClusterFake c = running(R"({"restart": {"maxRestarts": 0}})");
    c.pod("t-worker-3")["status"] = base::parse_json(test.status).value();
    c.settle();
    EXPECT_EQ(c.phase(), "Restarting") << test.what;
    EXPECT_EQ(c.status()["restarts"]["total"], 1) << test.what;
    EXPECT_EQ(c.status()["restarts"]["countedTowardsMax"], 0) << test.what;
    EXPECT_TRUE(c.has_pod("t-worker-3")) << test.what;
  }
}

TEST(Reconcile, a_pod_deleted_by_hand_is_replaced_and_does_not_count) {
  ClusterFake c = running(R"({"restart": {"maxRestarts": 0}})");
  c.delete_pod("t-worker-1").settle();
  EXPECT_EQ(c.status()["restarts"]["total"], 1);
  EXPECT_EQ(c.status()["restarts"]["countedTowardsMax"], 0);
  c.end_deleted().settle();
  EXPECT_EQ(c.pod("t-worker-1")["metadata"]["name"], "t-worker-1-2");
  EXPECT_EQ(c.pod("t-worker-1")["spec"]["hostname"], "t-worker-1");
}

TEST(Reconcile, a_pod_that_vanished_unseen_is_an_incident_once_all_were_up) {
  ClusterFake c = running(R"({"restart": {"maxRestarts": 0}})");
  c.erase_pod("t-worker-1").settle();
  EXPECT_EQ(c.attempt(), 2);
  EXPECT_EQ(c.status()["restarts"]["countedTowardsMax"], 0);
  EXPECT_EQ(c.status()["lastFailure"]["reason"], "Gone");
}

TEST(Reconcile, a_pod_that_vanished_before_all_were_up_is_made_again) {
  ClusterFake c;
  c.settle().erase_pod("t-worker-1").settle();
  EXPECT_EQ(c.attempt(), 1);
  EXPECT_TRUE(c.has_pod("t-worker-1"));
}

TEST(Reconcile, a_lost_peer_does_not_hide_the_cause) {
  ClusterFake c = running();
  c.exit("t-worker-0", 75).settle();
  EXPECT_EQ(c.phase(), "Running");
  EXPECT_TRUE(c.step().requeue_after.has_value());
  c.advance(1).exit("t-worker-2", 65).settle();
  EXPECT_EQ(c.phase(), "Failed");
  EXPECT_EQ(c.status()["lastFailure"]["rank"], 2);
}

TEST(Reconcile, a_lost_peer_without_a_cause_restarts_after_a_while) {
  ClusterFake c = running();
  c.exit("t-worker-0", 75).settle().advance(6).settle();
  EXPECT_EQ(c.phase(), "Restarting");
  EXPECT_EQ(c.status()["restarts"]["countedTowardsMax"], 1);
}

TEST(Reconcile, bad_data_that_shows_up_late_still_ends_the_job) {
  ClusterFake c = running();
  c.keep_deleted = true;
  c.exit("t-worker-0", 137).settle();
  EXPECT_EQ(c.phase(), "Restarting");
  c.exit("t-worker-2", 65).settle();
  EXPECT_EQ(c.phase(), "Failed");
}

TEST(Reconcile, an_exit_code_after_our_own_signal_means_nothing) {
  ClusterFake c = running();
  c.keep_deleted = true;
  c.exit("t-worker-0", 137).settle();
  c.advance(5).exit("t-worker-2", 65).settle();
  EXPECT_EQ(c.phase(), "Restarting");
}

TEST(Reconcile, clean_up_follows_its_policy) {
  struct Case {
    const char* policy;
    std::size_t pods_left, services_left;
  };
  for (const Case& test : {Case{"Running", 1, 1}, Case{"None", 5, 1}, Case{"All", 0, 0}}) {
    ClusterFake c = running(std::string(R"({"cleanup": {"podPolicy": ")") + test.policy +
                            R"("}, "restart": {"maxRestarts": 0}})");
    c.exit("t-worker-1", 70).settle();
    EXPECT_EQ(c.phase(), "Failed");
    EXPECT_EQ(c.pods.size(), test.pods_left) << test.policy;
    EXPECT_EQ(c.services.size(), test.services_left) << test.policy;
    EXPECT_TRUE(c.secret_exists);
  }
}

TEST(Reconcile, what_is_over_stays_over) {
  ClusterFake c = running(R"({"restart": {"maxRestarts": 0}})");
  c.exit("t-worker-1", 70).settle();
  const std::string phase = c.phase();
  const Json restarts = c.status()["restarts"];
  const int failed = c.status()["workers"]["failed"];
  c.pods.clear();
  c.services.clear();
  c.config_maps.clear();
  const int creates = c.count("create");
  c.advance(120).settle();
  EXPECT_EQ(c.phase(), phase);
  EXPECT_EQ(c.status()["restarts"], restarts);
  EXPECT_EQ(c.status()["workers"]["failed"], failed);
  EXPECT_EQ(c.count("create"), creates);
}

TEST(Reconcile, the_object_itself_goes_when_its_time_is_over_and_not_before) {
  ClusterFake c = running(R"({"cleanup": {"ttlSecondsAfterFinished": 60}})");
  c.exit("t-coordinator-0", 0).settle();
  c.advance(59);
  const Decision early = c.step();
  ASSERT_TRUE(early.requeue_after.has_value());
  EXPECT_EQ(*early.requeue_after, std::chrono::seconds(1));
  EXPECT_FALSE(c.job_deleted);
  c.advance(1).settle();
  EXPECT_TRUE(c.job_deleted);
}

TEST(Reconcile, a_job_created_suspended_has_no_children_and_one_write) {
  ClusterFake c(R"({"suspend": true})");
  c.settle();
  for (int i = 0; i < 5; ++i) c.advance(60).settle();
  EXPECT_EQ(c.log, std::vector<std::string>{"status Suspended"});
  EXPECT_EQ(c.condition("Suspended"), "True");
  EXPECT_EQ(c.attempt(), 0);
}

TEST(Reconcile, suspend_and_resume_use_the_new_template) {
  ClusterFake c = running();
  c.patch_spec(R"({"suspend": true})").settle();
  EXPECT_EQ(c.phase(), "Suspended");
  EXPECT_EQ(c.condition("Suspended"), "True");
  EXPECT_EQ(c.pods.size() + c.services.size() + c.config_maps.size(), 0u);
  EXPECT_EQ(c.status()["restarts"]["total"], 0);
  c.patch_spec(
       R"({"suspend": false, "workers": {"replicas": 2, "image": "trainer:2", "podOptions": {"nodeSelector": {"disk": "ssd"}}}})")
      .settle();
  EXPECT_EQ(c.attempt(), 2);
  EXPECT_EQ(c.condition("Suspended"), "False");
  ASSERT_EQ(c.pods.size(), 3u);
  for (const Json& pod : c.pods) EXPECT_EQ(pod["spec"]["containers"][0]["image"], "trainer:2");
  EXPECT_EQ(c.pod("t-worker-1")["spec"]["nodeSelector"]["disk"], "ssd");
  EXPECT_EQ(c.status()["workers"]["desired"], 2);
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Reconcile, quick_suspend_and_resume_waits_for_the_old_pods) {
  ClusterFake c = running();
  c.keep_deleted = true;
  c.patch_spec(R"({"suspend": true})").settle();
  EXPECT_EQ(c.condition("Suspended"), "False");
  c.patch_spec(R"({"suspend": false})").settle();
  EXPECT_EQ(c.attempt(), 2);
  EXPECT_EQ(c.count("create Pod"), 5);
  c.end_deleted().settle();
  EXPECT_EQ(c.count("create Pod"), 10);
  EXPECT_EQ(c.status()["restarts"]["total"], 0);
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Reconcile, clocks_stop_while_suspended) {
  ClusterFake c = running(R"({"deadlines": {"activeSeconds": 100}})");
  c.advance(40).patch_spec(R"({"suspend": true})").settle();
  c.advance(1000).patch_spec(R"({"suspend": false})").settle();
  EXPECT_EQ(c.status()["time"]["activeSeconds"], 40);
  EXPECT_EQ(c.status()["time"]["unproductiveSeconds"]["suspended"], 1000);
  c.run_all().settle().join_all();
  c.advance(59).settle();
  EXPECT_EQ(c.phase(), "Running");
  c.advance(1).settle();
  EXPECT_EQ(c.phase(), "Failed");
  EXPECT_EQ(c.condition_reason("Failed"), "DeadlineExceeded");
  EXPECT_EQ(c.pods.size(), 0u);
}

TEST(Reconcile, the_start_deadline_counts_until_all_have_joined) {
  ClusterFake c(R"({"deadlines": {"startSeconds": 30}})");
  c.settle().run_all().settle();
  EXPECT_EQ(*c.step().requeue_after, std::chrono::seconds(30));
  c.advance(30).settle();
  EXPECT_EQ(c.condition_reason("Failed"), "StartDeadlineExceeded");
  ClusterFake quick = running(R"({"deadlines": {"startSeconds": 30}})");
  quick.advance(100).settle();
  EXPECT_EQ(quick.phase(), "Running");
}

TEST(Reconcile, a_refused_create_is_named_and_retried_with_growing_gaps) {
  ClusterFake c;
  c.refuse_creates["Pod/t-worker-1-1"] =
      "pods \"t-worker-1-1\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: "
      "pods=2";
  c.settle();
  EXPECT_EQ(c.phase(), "Pending");
  EXPECT_EQ(c.condition_reason("PodsReady"), "QuotaExceeded");
  EXPECT_NE(c.condition_message("PodsReady").find("exceeded quota"), std::string::npos);
  EXPECT_NE(c.condition_message("PodsReady").find("3 of 5"), std::string::npos);
  EXPECT_EQ(*c.step().requeue_after, std::chrono::seconds(1));
  c.advance(20);
  EXPECT_EQ(*c.step().requeue_after, std::chrono::seconds(10));
  c.refuse_creates.clear();
  c.settle();
  EXPECT_EQ(c.pods.size(), 5u);
  EXPECT_EQ(c.status()["restarts"]["total"], 0);
  EXPECT_EQ(c.broken, kNothingBroken);
}

TEST(Reconcile, an_unschedulable_rank_is_named_and_nobody_is_restarted) {
  ClusterFake c;
  c.settle().run("t-coordinator-0").run("t-worker-0").run("t-worker-1").run("t-worker-2");
  c.pod("t-worker-3")["status"] =
      base::parse_json(R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False",
      "reason":"Unschedulable","message":"0/2 nodes are available: 2 Insufficient cpu.","lastTransitionTime":"2026-01-01T00:00:00Z"}]})")
          .value();
  c.settle();
  EXPECT_EQ(c.phase(), "Starting");
  EXPECT_EQ(c.status()["workers"]["readyText"], "3/4");
  EXPECT_EQ(c.condition_reason("PodsReady"), "Unschedulable");
  EXPECT_NE(c.condition_message("PodsReady").find("t-worker-3-1 Unschedulable: 0/2 nodes"),
            std::string::npos);
  c.advance(120).settle();
  EXPECT_EQ(c.condition_reason("PodsReady"), "GangIncomplete");
  EXPECT_EQ(c.count("delete"), 0);
}

TEST(Reconcile, other_hands_and_a_deletion_stop_everything) {
  ClusterFake other(R"({"managedBy": "example.org/other"})");
  other.settle();
  EXPECT_TRUE(other.log.empty());
  ClusterFake deleted;
  deleted.job.meta.deletion_timestamp = "2026-01-01T00:00:00Z";
  deleted.settle();
  EXPECT_TRUE(deleted.log.empty());
}

TEST(Reconcile, a_pod_that_does_not_go_is_forced_once_and_only_when_allowed) {
  ClusterFake c = running(R"({"restart": {"terminatingTimeoutSeconds": 20}})");
  c.keep_deleted = true;
  c.exit("t-worker-2", 70).settle();
  const int deletes = c.count("delete Pod");
  c.advance(19).settle();
  EXPECT_EQ(c.count("delete Pod"), deletes);
  c.advance(1).settle();
  EXPECT_EQ(c.count("delete Pod"), deletes + 5);
  EXPECT_EQ(c.count("create Pod"), 10);
}

TEST(Reconcile, a_pod_on_a_lost_node_holds_nobody_up_once_its_grace_is_over) {
  ClusterFake c = running();
  c.keep_deleted = true;
  c.pod("t-worker-2")["status"]["conditions"] =
      base::parse_json(R"([{"type":"DisruptionTarget","status":"True","reason":"DeletionByTaintManager"}])")
          .value();
  c.delete_pod("t-worker-2").settle();
  std::erase_if(c.pods, [](const Json& pod) { return pod["metadata"]["name"] != "t-worker-2-1"; });
  c.settle();
  EXPECT_EQ(c.count("create Pod"), 5);
  c.advance(61).step();
  EXPECT_EQ(c.count("create Pod"), 10);
}

TEST(Reconcile, poison_children_never_crash) {
  const char* poison[] = {
      "null",
      "17",
      "\"pod\"",
      "[]",
      "{}",
      R"({"metadata": null})",
      R"({"metadata": {"labels": 3, "ownerReferences": {}}})",
      R"({"metadata": {"name": 5, "uid": [], "labels": {"training.evenkeel.dev/attempt": "x"},
          "ownerReferences": [{"controller": true, "uid": "0123456789abcdef"}]}})",
      R"({"metadata": {"name": "t-worker-0-1", "uid": "u", "deletionTimestamp": "yesterday", "deletionGracePeriodSeconds": "long",
          "labels": {"training.evenkeel.dev/attempt": "99999999999999999999", "training.evenkeel.dev/rank": "-1"},
          "ownerReferences": [7, {"controller": true, "uid": "0123456789abcdef"}]},
          "status": {"phase": 3, "conditions": {"type": "Ready"}, "containerStatuses": [1, {"state": 4}]}})",
      R"({"metadata": {"name": "t-worker-1-1", "uid": "v", "labels": {"training.evenkeel.dev/attempt": "1"},
          "ownerReferences": [{"controller": true, "uid": "0123456789abcdef"}]},
          "status": {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": "x", "message": 4}}}]}})"};
  for (const char* text : poison) {
    ClusterFake c;
    for (std::vector<Json>* list : {&c.pods, &c.services, &c.config_maps})
      list->push_back(base::parse_json(text).value());
    for (int i = 0; i < 3; ++i) {
      const Decision decision = c.step();
      for (const std::string& reason : decision.reasons)
        EXPECT_EQ(reason.find("internal"), std::string::npos) << text << reason;
    }
    c.job.status_json = base::parse_json(text).value();
    c.step();
  }
}

TEST(Reconcile, a_strangers_pod_is_neither_adopted_nor_deleted) {
  ClusterFake c;
  c.settle();
  Json stranger = c.pod("t-worker-0");
  stranger["metadata"]["name"] = "t-worker-9-1";
  stranger["metadata"]["uid"] = "other";
  stranger["metadata"]["ownerReferences"][0]["uid"] = "old-job";
  c.pods.push_back(stranger);
  c.run_all().settle().join_all();
  c.exit("t-worker-0", 65).settle();
  EXPECT_EQ(c.count("delete Pod t-worker-9-1"), 0);
}

TEST(Reconcile, a_service_that_somebody_edited_is_put_right_and_then_left_alone) {
  ClusterFake c;
  c.settle().run_all().settle();
  EXPECT_EQ(c.count("patch Service"), 0);
  // What the API server adds is no edit.
  c.services[0]["spec"]["ipFamilies"] = Json::array({"IPv4"});
  c.services[0]["spec"]["ports"][0]["appProtocol"] = "http";
  c.settle();
  EXPECT_EQ(c.count("patch Service"), 0);
  const Json good = c.services[0]["spec"]["selector"];
  c.services[0]["spec"]["selector"] = Json{{"app", "mine"}};
  c.settle();
  EXPECT_EQ(c.count("patch Service"), 1);
  EXPECT_EQ(c.services[0]["spec"]["selector"], good);
  c.services[0]["spec"]["selector"]["more"] = "x";
  c.services[0]["spec"]["ports"].erase(0);
  c.services[0]["spec"]["publishNotReadyAddresses"] = false;
  c.settle();
  EXPECT_EQ(c.count("patch Service"), 2);
  EXPECT_EQ(c.services[0]["spec"]["selector"], good);
  EXPECT_EQ(c.services[0]["spec"]["ports"].size(), 3u);
  EXPECT_EQ(c.services[0]["spec"]["publishNotReadyAddresses"], true);
  EXPECT_TRUE(c.broken.empty());
}

TEST(Reconcile, a_refused_object_fails_once) {
  Json object = {{"metadata", {{"name", "t"}, {"generation", 3}}}, {"spec", {{"workers", Json::object()}}}};
  const auto now = base::parse_rfc3339("2026-01-01T00:00:00Z").value();
  const Decision first = refuse(object, "spec.workers.replicas: is missing", now);
  ASSERT_TRUE(first.status.has_value());
  EXPECT_EQ((*first.status)["phase"], "Failed");
  EXPECT_TRUE(first.requests.empty());
  EXPECT_FALSE(first.requeue_after.has_value());
  object["status"] = *first.status;
  EXPECT_FALSE(
      refuse(object, "spec.workers.replicas: is missing", now + std::chrono::hours(1)).status.has_value());
  object["status"] = nullptr;
  object["spec"]["managedBy"] = "example.org/other";
  EXPECT_FALSE(refuse(object, "x", now).status.has_value());
}

}  // namespace
}  // namespace evenkeel::oper
