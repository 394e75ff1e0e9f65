// Whole runs of one job against an API server in memory: what is decided is carried out, whatever is lost on
// the way.
#include "operator/runtime/controller.h"

#include <gtest/gtest.h>

#include "contract/labels.h"
#include "operator/runtime/process_fake.h"

namespace evenkeel::oper {
namespace {

using namespace std::chrono_literals;
using Failure = FakeApiServer::Failure;

class ControllerTest : public ::testing::Test {
 protected:
  ControllerTest() { restart(); }

  void restart() { process = std::make_unique<Process>(transport, tokens, clock); }
  void create_job(const std::string& name = "t") {
    server.put("trainingjobs",
               *base::parse_json(R"({"apiVersion": "training.evenkeel.dev/v1alpha1", "kind": "TrainingJob",
      "metadata": {"namespace": "a", "name": ")" +
                                 name + R"(", "generation": 1},
      "spec": {"workers": {"replicas": 3}, "model": {"preset": "mlp"}, "dataset": {"format": "idx", "path": "/d"},
               "training": {"epochs": 1, "batchSize": {"perReplica": 8}}}})"));
  }
  void sync() {
    server.sync("trainingjobs", process->stores.jobs);
    server.sync("pods", process->stores.pods);
    server.sync("services", process->stores.services);
    server.sync("configmaps", process->stores.config_maps);
  }
  RunReport run(const std::string& key = "a/t") { return process->controller.run(key); }
  // Runs until two in a row write nothing; the number of runs that it took, or -1.
  int settle() {
    for (int runs = 0, quiet = 0; runs < 40; ++runs) {
      const int writes = server.writes();
      sync();
      run();
      clock.advance(100ms);
      quiet = server.writes() == writes ? quiet + 1 : 0;
      if (quiet == 2) return runs;
    }
    return -1;
  }
  Json job() { return server.objects.at("trainingjobs/a/t"); }
  std::string phase() { return base::string_at(base::child(job(), "status"), "phase"); }
  void set_pods(const std::string& phase_now, int exit_code = -1) {
    for (auto& [key, object] : server.objects) {
      if (key.rfind("pods/", 0) != 0) continue;
      Json pod = object;
      pod["status"] = Json{{"phase", phase_now}};
      if (exit_code >= 0)
        pod["status"]["containerStatuses"] = Json::array(
            {{{"name", contract::kContainerName}, {"state", {{"terminated", {{"exitCode", exit_code}}}}}}});
      server.put("pods", pod);
    }
  }

  base::FakeClock clock;
  FakeTransport transport;
  FakeApiServer server{transport};
  NoTokens tokens;
  std::unique_ptr<Process> process;
};

TEST_F(ControllerTest, makes_all_children_once_and_is_quiet_then) {
  create_job();
  ASSERT_GE(settle(), 0);
  EXPECT_EQ(server.names("pods").size(), 4u);
  EXPECT_EQ(server.names("services"), std::vector<std::string>{"t"});
  EXPECT_EQ(server.names("configmaps").size(), 1u);
  EXPECT_EQ(server.names("secrets").size(), 1u);
  int posts = 0;
  for (const std::string& line : server.log()) posts += line.rfind("POST pods", 0) == 0 ? 1 : 0;
  EXPECT_EQ(posts, 4);
}

TEST_F(ControllerTest, a_cache_that_lags_makes_no_pod_twice) {
  create_job();
  server.sync("trainingjobs", process->stores.jobs);
  for (int i = 0; i < 200; ++i) {  // 60 s without one pod event; the job's own events come
    server.sync("trainingjobs", process->stores.jobs);
    run();
    clock.advance(300ms);
  }
  EXPECT_EQ(server.names("pods").size(), 4u);
  for (const std::string& line : server.log()) {
    EXPECT_EQ(line.rfind("DELETE", 0), std::string::npos) << line;
    if (line.rfind("POST pods", 0) == 0) {
      EXPECT_NE(line.find(" 201"), std::string::npos) << line;
    }
  }
}

// Killed at the n-th write, before or after it took effect, for every n: the same end state.
TEST_F(ControllerTest, killed_at_any_write_it_ends_in_the_same_state) {
  create_job();
  ASSERT_GE(settle(), 0);
  const int all_writes = server.writes();
  const auto pods = server.names("pods");
  for (const Failure failure : {Failure::kBefore, Failure::kCommittedNoReply}) {
    for (int n = 1; n <= all_writes; ++n) {
      server.objects.clear();
      restart();
      create_job();
      server.fail_write(n, failure);
      sync();
      for (int runs = 0; runs < n; ++runs) {
        run();
        sync();
      }
      restart();
      ASSERT_GE(settle(), 0) << n;
      EXPECT_EQ(server.names("pods"), pods) << n;
      EXPECT_EQ(server.names("services").size(), 1u);
      EXPECT_EQ(base::int_at(base::child(job(), "status"), "attempt"), 1) << n;
    }
  }
}

TEST_F(ControllerTest, a_failed_job_is_counted_once_by_what_is_persisted) {
  create_job();
  settle();
  set_pods("Failed", 64);
  ASSERT_GE(settle(), 0);
  EXPECT_EQ(phase(), "Failed");
  EXPECT_EQ(process->finished, std::vector<std::string>{"failed"});
  restart();
  settle();
  EXPECT_TRUE(process->finished.empty());
}

TEST_F(ControllerTest, a_job_that_vanishes_while_it_runs_is_counted_as_deleted) {
  create_job();
  settle();
  server.objects.erase("trainingjobs/a/t");
  sync();
  run();
  run();
  EXPECT_EQ(process->finished, std::vector<std::string>{"deleted"});
}

TEST_F(ControllerTest, a_job_that_is_deleted_right_after_its_end_is_counted_by_its_end) {
  create_job();
  ASSERT_GE(settle(), 0);
  set_pods("Failed", 64);
  sync();
  run();
  ASSERT_EQ(phase(), "Failed");
  server.objects.erase("trainingjobs/a/t");  // before any run has seen the end
  sync();
  run();
  run();
  EXPECT_EQ(process->finished, std::vector<std::string>{"failed"});
}

TEST_F(ControllerTest, hands_off_a_job_that_another_manages_even_if_it_is_invalid) {
  server.put(
      "trainingjobs",
      *base::parse_json(
          R"({"metadata": {"namespace": "a", "name": "t"}, "spec": {"managedBy": "example.org/x", "workers": 5}})"));
  sync();
  run();
  EXPECT_EQ(server.writes(), 0);
}

TEST_F(ControllerTest, a_poison_object_gets_its_refusal_and_nothing_else) {
  for (const char* spec : {"{}", "5", "null", R"({"workers": {"replicas": 0}})",
                           R"({"cleanup": {"ttlSecondsAfterFinished": -1}})"}) {
    server.objects.clear();
    restart();
    server.put("trainingjobs",
               *base::parse_json(
                   std::string(R"({"metadata": {"namespace": "a", "name": "t", "generation": 1}, "spec": )") +
                   spec + "}"));
    ASSERT_GE(settle(), 0) << spec;
    EXPECT_EQ(phase(), "Failed") << spec;
    EXPECT_EQ(server.names("pods").size(), 0u);
  }
}

TEST_F(ControllerTest, nothing_is_created_for_a_job_that_is_being_deleted) {
  create_job();
  Json object = job();
  object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  server.put("trainingjobs", object);
  settle();
  EXPECT_EQ(server.writes(), 0);
}

TEST_F(ControllerTest, a_namesake_waits_for_the_old_ones_children_and_touches_none_of_them) {
  create_job();
  settle();
  const std::string old_uid = base::string_at(job()["metadata"], "uid");
  server.objects.erase("trainingjobs/a/t");
  create_job();
  for (int i = 0; i < 5; ++i) {
    sync();
    run();
    clock.advance(1s);
  }
  for (const auto& [key, object] : server.objects) {
    if (key.rfind("pods/", 0) == 0) {
      EXPECT_EQ(controller_uid(object), old_uid);
    }
  }
  for (const std::string& line : server.log()) EXPECT_EQ(line.rfind("DELETE", 0), std::string::npos) << line;
  std::erase_if(server.objects,
                [&](const auto& entry) { return controller_uid(entry.second) == old_uid; });  // collected
  ASSERT_GE(settle(), 0);
  EXPECT_EQ(server.names("pods").size(), 4u);
  EXPECT_EQ(base::int_at(base::child(job(), "status"), "attempt"), 1);
}

}  // namespace
}  // namespace evenkeel::oper
