// The operator against a real API server. Pods are hollow: their status is what the test writes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "base/files.h"
#include "contract/labels.h"
#include "operator/kube/transport_cpprest.h"
#include "tests/operator/server_fixture.h"

namespace evenkeel::oper {
namespace {

using namespace std::chrono_literals;
using contract::JobStage;
constexpr int kWorkers = 4;

std::string meta_of(const Json& object, std::string_view key) {
  return base::string_at(base::child(object, "metadata"), key);
}
std::string label(const Json& object, const char* name) {
  return base::string_at(base::at_path(object, {"metadata", "labels"}), name);
}

class OperatorTest : public ServerFixture {
 protected:
  void TearDown() override {
    EXPECT_EQ(server().run().new_violations(op_.running() ? op_.page("/metrics") : ""), "");
    if (HasFailure()) std::printf("operator log:\n%s\n", op_.log().c_str());
  }

  // All pods of the current attempt are there, and no others.
  static bool has_all_pods(JobUnderTest& job) {
    job.finish_terminating();
    const auto pods = job.pods();
    std::set<std::string> places;
    for (const Json& pod : pods) {
      if (label(pod, contract::kLabelAttempt) != std::to_string(job.attempt())) return false;
      places.insert(label(pod, contract::kLabelRole) + label(pod, contract::kLabelRank));
    }
    return pods.size() == kWorkers + 1 && places.size() == kWorkers + 1;
  }
  static void bring_to_running(JobUnderTest& job) {
    ASSERT_TRUE(eventually([&] { return has_all_pods(job); })) << job.job().dump(1);
    job.report(JobStage::kRunning, 1);
    job.run_all();
    ASSERT_TRUE(eventually([&] { return job.phase() == "Running"; })) << job.job().dump(1);
  }
  static Json pod_of(JobUnderTest& job, const std::string& role, int rank) {
    for (const Json& pod : job.pods())
      if (label(pod, contract::kLabelRole) == role &&
          label(pod, contract::kLabelRank) == std::to_string(rank))
        return pod;
    return Json();
  }
  static void succeed(JobUnderTest& job) {
    const auto report = job.make_report(JobStage::kCompleted, 100);
    job.report(JobStage::kCompleted, 100);
    for (int rank = 0; rank < kWorkers; ++rank) job.end_pod(pod_of(job, "worker", rank), 0);
    job.end_pod(pod_of(job, "coordinator", 0), 0, contract::termination_message(report));
  }

  OperatorProcess op_{server()};
};

TEST_F(OperatorTest, a_job_gets_its_children_runs_and_succeeds) {
  op_.start();
  JobUnderTest job(server(), "full", kWorkers);
  job.create();
  ASSERT_TRUE(eventually([&] { return has_all_pods(job); })) << job.job().dump(1);
  EXPECT_EQ(job.names(services()), std::vector<std::string>{"full"});
  EXPECT_EQ(job.names(config_maps()).size(), 1u);
  EXPECT_EQ(job.names(secrets()).size(), 1u);
  for (const Json& pod : job.pods()) {
    const Json& owner = base::at_path(pod, {"metadata", "ownerReferences"}).at(0);
    EXPECT_EQ(base::string_at(owner, "uid"), meta_of(job.job(), "uid"));
    EXPECT_TRUE(base::bool_at(owner, "controller"));
  }
  EXPECT_EQ(job.condition("Accepted"), "True");
  bring_to_running(job);
  EXPECT_EQ(job.condition("Running"), "True");
  EXPECT_TRUE(eventually([&] {
    ApiReply reply = server().client().list(
        events(), {.name_space = job.name_space(), .label_selector = "", .limit = 100, .continue_token = ""});
    std::set<std::string> reasons;
    if (reply.ok()) {
      for (const Json& event : reply.object["items"]) reasons.insert(base::string_at(event, "reason"));
    }
    return reasons.contains("Accepted") && reasons.contains("RendezvousComplete");
  }));
  succeed(job);
  ASSERT_TRUE(eventually([&] { return job.phase() == "Succeeded"; })) << job.job().dump(1);
  EXPECT_EQ(job.condition("Complete"), "True");
  EXPECT_EQ(base::int_at(base::at_path(job.job(), {"status", "progress"}), "step"), 100);
  const std::string page = op_.page("/metrics");
  EXPECT_NE(
      page.find(
          "evenkeel_job_status_phase{namespace=\"ns-full\",trainingjob=\"full\",phase=\"Succeeded\"} 1"),
      std::string::npos)
      << page;
  EXPECT_TRUE(eventually([&] {
    return op_.page("/metrics")
               .find("evenkeel_operator_jobs_finished_total{namespace=\"ns-full\",result=\"succeeded\"} 1") !=
           std::string::npos;
  }));
  EXPECT_EQ(op_.page("/healthz"), "ok\n");
  EXPECT_EQ(op_.page("/readyz"), "ok\n");
  EXPECT_EQ(op_.terminate(), 0);
}

TEST_F(OperatorTest, suspend_takes_all_pods_away_and_resume_starts_the_next_attempt) {
  op_.start();
  JobUnderTest job(server(), "suspend", kWorkers);
  job.create();
  bring_to_running(job);
  job.patch_spec(Json{{"suspend", true}});
  ASSERT_TRUE(eventually([&] { return job.condition("Suspended") == "True"; })) << job.job().dump(1);
  EXPECT_EQ(job.phase(), "Suspended");
  EXPECT_TRUE(job.pods().empty());
  EXPECT_TRUE(job.names(services()).empty());
  EXPECT_TRUE(job.names(config_maps()).empty());
  job.patch_spec(Json{{"suspend", false}});
  bring_to_running(job);
  EXPECT_EQ(job.attempt(), 2);
  EXPECT_EQ(job.condition("Suspended"), "False");
}

TEST_F(OperatorTest, a_failed_worker_restarts_the_whole_job_once_if_the_job_says_so) {
  op_.start();
  JobUnderTest job(server(), "fails", kWorkers);
  job.create({{"restart", {{"scope", "Job"}}}});
  bring_to_running(job);
  std::set<std::string> first;
  for (const std::string& name : job.pod_names()) first.insert(name);
  job.end_pod(pod_of(job, "worker", 2), 1, "segmentation fault");
  ASSERT_TRUE(eventually([&] { return job.attempt() == 2 && has_all_pods(job); })) << job.job().dump(1);
  for (const std::string& name : job.pod_names()) EXPECT_FALSE(first.contains(name)) << name;
  bring_to_running(job);
  EXPECT_EQ(base::int_at(base::at_path(job.job(), {"status", "restarts"}), "total"), 1);
  EXPECT_EQ(job.attempt(), 2);
}

// The pods that were not harmed keep their UIDs, and the job its attempt.
TEST_F(OperatorTest, a_worker_and_the_coordinator_are_replaced_alone) {
  op_.start();
  JobUnderTest job(server(), "alone", kWorkers);
  job.create();
  bring_to_running(job);
  std::set<std::string> kept;
  for (const Json& pod : job.pods()) {
    if (meta_of(pod, "name") != "alone-worker-2-1" && meta_of(pod, "name") != "alone-coordinator-0-1")
      kept.insert(meta_of(pod, "uid"));
  }
  const auto takes_over = [&](const std::string& role, int rank, const std::string& name) {
    return eventually([&] { return has_all_pods(job) && meta_of(pod_of(job, role, rank), "name") == name; }, 90s);
  };
  const auto total = [&] { return base::int_at(base::at_path(job.job(), {"status", "restarts"}), "total"); };
  job.end_pod(pod_of(job, "worker", 2), 1, "segmentation fault");
  ASSERT_TRUE(takes_over("worker", 2, "alone-worker-2-2")) << job.job().dump(1);
  EXPECT_EQ(total(), 1);
  bring_to_running(job);
  // `kubectl delete pod --force` of the coordinator.
  const Json coordinator = pod_of(job, "coordinator", 0);
  server().client().remove(pods(), job.name_space(), meta_of(coordinator, "name"),
                           {meta_of(coordinator, "uid"), "", 0});
  ASSERT_TRUE(takes_over("coordinator", 0, "alone-coordinator-0-3")) << job.job().dump(1);
  EXPECT_EQ(total(), 2);
  bring_to_running(job);
  for (const Json& pod : job.pods()) kept.erase(meta_of(pod, "uid"));
  EXPECT_TRUE(kept.empty());
  EXPECT_EQ(job.attempt(), 1);
  EXPECT_EQ(base::int_at(base::at_path(job.job(), {"status", "restarts"}), "countedTowardsMax"), 1);
}

// Somebody deletes the Secret of a running job. Nobody needs it until a pod is made; then old and new pods would hold
// different keys, so all begin anew.
TEST_F(OperatorTest, a_deleted_key_costs_one_restart_when_a_pod_is_replaced) {
  op_.start();
  JobUnderTest job(server(), "key", kWorkers);
  job.create();
  bring_to_running(job);
  std::set<std::string> first;
  for (const std::string& name : job.pod_names()) first.insert(name);
  const auto lose_key = [&] {
    for (const std::string& name : job.names(secrets())) {
      const ApiReply secret = server().client().get(secrets(), job.name_space(), name);
      EXPECT_TRUE(server()
                      .client()
                      .remove(secrets(), job.name_space(), name, {meta_of(secret.object, "uid"), "", std::nullopt})
                      .ok());
    }
    EXPECT_TRUE(job.names(secrets()).empty());
  };
  lose_key();
  job.end_pod(pod_of(job, "worker", 2), 1, "segmentation fault");
  ASSERT_TRUE(eventually([&] {
    job.finish_terminating();
    return job.attempt() == 2 && has_all_pods(job);
  })) << job.job().dump(1);
  for (const std::string& name : job.pod_names()) EXPECT_FALSE(first.contains(name)) << name;
  EXPECT_EQ(job.names(secrets()).size(), 1u);
  EXPECT_EQ(base::int_at(base::at_path(job.job(), {"status", "restarts"}), "total"), 1);
  bring_to_running(job);
  // A new operator finds out by itself.
  lose_key();
  op_.kill();
  op_.start();
  ASSERT_TRUE(eventually([&] {
    job.finish_terminating();
    return job.attempt() == 3 && has_all_pods(job);
  })) << job.job().dump(1);
  EXPECT_EQ(base::string_at(base::at_path(job.job(), {"status", "lastFailure"}), "reason"), "KeyLost");
  bring_to_running(job);
}

TEST_F(OperatorTest, a_running_job_is_scaled_up_and_down) {
  op_.start();
  JobUnderTest job(server(), "scales", kWorkers);
  job.create({{"workers", {{"minReplicas", 2}, {"maxReplicas", 6}}}});
  bring_to_running(job);
  const auto wanted = [&] {
    const ApiReply map = server().client().get(config_maps(), job.name_space(), "scales-wanted-1");
    return base::string_at(base::child(map.object, "data"), "replicas");
  };
  const auto scale = [&](int replicas) { job.patch_spec({{"workers", {{"replicas", replicas}}}}); };
  EXPECT_EQ(wanted(), "4");
  scale(6);
  ASSERT_TRUE(eventually([&] { return job.pods().size() == 7; })) << job.job().dump(1);
  EXPECT_EQ(wanted(), "6");
  EXPECT_TRUE(eventually([&] {
    const Json coordinator = pod_of(job, "coordinator", 0);
    return base::string_at(base::at_path(coordinator, {"metadata", "annotations"}),
                           contract::kAnnotationWanted) == "6";
  }));
  job.run_all();
  job.report(JobStage::kRunning, 2);
  scale(3);
  ASSERT_TRUE(eventually([&] { return wanted() == "3"; }));
  EXPECT_EQ(job.pods().size(), 7u) << "nobody goes before the coordinator has let them go";
  job.report(JobStage::kRunning, 3);
  ASSERT_TRUE(eventually([&] { return job.pods().size() == 4; }, 90s)) << job.job().dump(1);
  EXPECT_EQ(job.attempt(), 1);
  EXPECT_EQ(job.phase(), "Running");
  EXPECT_EQ(base::int_at(base::at_path(job.job(), {"status", "restarts"}), "total"), 0);
}

TEST_F(OperatorTest, a_deleted_job_leaves_nothing_behind) {
  op_.start();
  JobUnderTest job(server(), "goes", kWorkers);
  job.create();
  bring_to_running(job);
  job.remove();
  ASSERT_TRUE(eventually(
      [&] {
        return job.job().is_null() && job.pods().empty() && job.names(services()).empty() &&
               job.names(config_maps()).empty() && job.names(secrets()).empty();
      },
      90s));
  EXPECT_EQ(op_.page("/metrics").find("trainingjob=\"goes\""), std::string::npos);
}

// Killed after its n-th write of the start, for several n: the same end state, and no pod twice.
TEST_F(OperatorTest, killed_while_it_creates_it_ends_in_the_same_state) {
  for (int pods_before_kill = 1; pods_before_kill <= kWorkers; ++pods_before_kill) {
    op_.start();
    JobUnderTest job(server(), "killed" + std::to_string(pods_before_kill), kWorkers);
    job.create();
    eventually([&] { return static_cast<int>(job.pods().size()) >= pods_before_kill; });
    op_.kill();
    op_.start();
    bring_to_running(job);
    EXPECT_EQ(job.attempt(), 1);
    EXPECT_EQ(base::int_at(base::at_path(job.job(), {"status", "restarts"}), "total"), 0);
    succeed(job);
    ASSERT_TRUE(eventually([&] { return job.phase() == "Succeeded"; })) << job.job().dump(1);
    op_.kill();
  }
}

TEST_F(OperatorTest, killed_in_an_incident_it_counts_it_once) {
  op_.start();
  JobUnderTest job(server(), "twice", kWorkers);
  job.create();
  bring_to_running(job);
  job.end_pod(pod_of(job, "worker", 1), 1);
  eventually([&] { return base::int_at(base::child(job.job(), "status"), "incarnation") == 2; });
  op_.kill();
  op_.start();
  const auto replaced = [&] { return meta_of(pod_of(job, "worker", 1), "name") == "twice-worker-1-2"; };
  ASSERT_TRUE(eventually([&] { return has_all_pods(job) && replaced(); })) << job.job().dump(1);
  bring_to_running(job);
  EXPECT_EQ(base::int_at(base::at_path(job.job(), {"status", "restarts"}), "total"), 1);
}

TEST_F(OperatorTest, at_rest_nothing_is_written) {
  op_.start();
  JobUnderTest job(server(), "rest", kWorkers);
  job.create();
  bring_to_running(job);
  // Until the last write of the start is over.
  std::string version;
  eventually([&] {
    const std::string now = meta_of(job.job(), "resourceVersion");
    std::this_thread::sleep_for(2s);
    version = meta_of(job.job(), "resourceVersion");
    return version == now;
  });
  std::this_thread::sleep_for(8s);
  EXPECT_EQ(meta_of(job.job(), "resourceVersion"), version);
}

TEST_F(OperatorTest, a_stranger_with_a_childs_name_is_a_condition_and_stays) {
  op_.start();
  JobUnderTest job(server(), "clash", kWorkers);
  const ApiReply stranger =
      server().client().create(services(), job.name_space(),
                               Json{{"apiVersion", "v1"},
                                    {"kind", "Service"},
                                    {"metadata", {{"name", "clash"}}},
                                    {"spec", {{"ports", Json::array({{{"port", 80}}})}}}});
  ASSERT_TRUE(stranger.ok()) << stranger.message;
  job.create();
  ASSERT_TRUE(eventually([&] { return job.condition("NameConflict") == "True"; })) << job.job().dump(1);
  const ApiReply still = server().client().get(services(), job.name_space(), "clash");
  EXPECT_EQ(meta_of(still.object, "uid"), meta_of(stranger.object, "uid"));
  server().client().remove(services(), job.name_space(), "clash",
                           {meta_of(stranger.object, "uid"), "", std::nullopt});
  EXPECT_TRUE(eventually([&] { return has_all_pods(job) && job.condition("NameConflict") != "True"; }))
      << job.job().dump(1);
}

TEST_F(OperatorTest, is_run_by_a_token_too) {
  OperatorProcess by_token(server(), server().folder() / "kubeconfig-token");
  by_token.start();
  EXPECT_TRUE(eventually([&] { return by_token.page("/readyz") == "ok\n"; })) << by_token.log();
  std::ifstream file(server().folder() / "token");
  std::string token;
  file >> token;
  ASSERT_GT(token.size(), 20u);
  EXPECT_EQ(by_token.log().find(token), std::string::npos);
  EXPECT_EQ(by_token.page("/metrics").find(token), std::string::npos);
}

// A certificate's common name counts for nothing, and the system's authorities neither.
TEST_F(OperatorTest, only_the_clusters_ca_and_alternative_names_are_believed) {
  auto access = load_kubeconfig(base::real_files(), server().kubeconfig());
  ASSERT_TRUE(access.ok());
  const auto outcome = [](const AccessConfig& config) {
    Credentials credentials(config, base::real_files(), base::real_clock());
    return make_cpprest_transport(credentials)->send({"GET", "/version", "", "", ""}, 10s, 1u << 20).outcome;
  };
  EXPECT_EQ(outcome(*access), Outcome::kAnswered);
  AccessConfig named = *access;
  named.server.server_name = "kubernetes.default.svc";
  EXPECT_EQ(outcome(named), Outcome::kAnswered);
  named.server.server_name = "kube-apiserver";  // the common name
  EXPECT_NE(outcome(named), Outcome::kAnswered);
  AccessConfig no_ca = *access;
  no_ca.ca = {};
  EXPECT_NE(outcome(no_ca), Outcome::kAnswered);
}

}  // namespace
}  // namespace evenkeel::oper
