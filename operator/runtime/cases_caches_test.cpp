// Operator cases: caches that lag, answers that are lost. One operator, an API server in memory.
#include <gtest/gtest.h>

#include <set>

#include "operator/runtime/cases_world.h"

namespace evenkeel::oper {
namespace {

using namespace std::chrono_literals;

TEST(OperatorCases, OP_25_stale_cache_doubles_pods) {
  CasesWorld w;
  w.hold_pods = true;
  w.create_job({{"workers", {{"replicas", 8}}}});
  w.run_for(60s);
  w.hold_pods = false;
  w.run_for(10s);
  EXPECT_EQ(w.count("POST pods", " 201"), 9);
  EXPECT_EQ(w.pods().size(), 9u);
  EXPECT_EQ(w.count("DELETE"), 0);
  EXPECT_EQ(w.restarts(), 0);
}

TEST(OperatorCases, OP_26_late_event_of_the_old_object) {
  CasesWorld w;
  w.create_job();
  w.run_for(2s);
  const auto old_objects = w.server.objects;
  w.server.objects.clear();  // deleted, and its children collected
  w.create_job();
  w.run_for(2s);
  ASSERT_EQ(w.pods().size(), 5u);
  const std::set<std::string> uids = w.pod_uids();
  const int writes = w.server.writes();
  w.clock.advance(10s);
  for (const auto& [key, object] : old_objects) {
    for (ObjectStore* store : {&w.process->stores.jobs, &w.process->stores.pods, &w.process->stores.services})
      store->erase(CasesWorld::uid_of(object));
    w.run();
  }
  EXPECT_EQ(w.server.writes(), writes);
  EXPECT_EQ(w.process->stores.pods.size(), 5u) << "the new ones stay known";
  w.run_for(10s);
  EXPECT_EQ(w.pod_uids(), uids);
  EXPECT_EQ(w.count("DELETE"), 0);
}

TEST(OperatorCases, OP_27_own_create_seen_as_a_clash) {
  CasesWorld w;
  bool lost = false;
  w.server.intercept = [&](const HttpCall& call) -> MaybeReply {
    if (call.method == "POST" && contains(call.body, "\"t-worker-0-1\"") && !lost) {
      lost = true;
      w.server.fail_write(1, FakeApiServer::Failure::kCommittedNoReply);
      // The retry comes before the watch shows it.
      w.process->stores.pods.put(w.server.objects.at("pods/a/t-coordinator-0-1"));
    }
    return std::nullopt;
  };
  w.hold_pods = true;
  w.create_job();
  w.run_for(1s);
  w.hold_pods = false;
  w.run_for(10s);
  EXPECT_TRUE(lost);
  EXPECT_EQ(w.count("POST pods t-worker-0-1", " 201"), 1);
  EXPECT_EQ(w.count("POST pods t-worker-0-1", " 409"), 1);
  EXPECT_EQ(w.pods().size(), 5u);
  EXPECT_EQ(w.phase(), "Pending");
  EXPECT_NE(w.state_of("NameConflict"), "True");
}

TEST(OperatorCases, OP_28_same_name_other_owner) {
  CasesWorld w;
  w.create_job();
  w.run_for(2s);
  const std::string old_uid = CasesWorld::uid_of(w.job());
  std::vector<std::string> old_pods = w.pods();
  for (const std::string& name : old_pods) {
    Json pod = w.server.objects.at("pods/a/" + name);
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:22Z";
    w.server.put("pods", pod);
  }
  w.server.objects.erase("trainingjobs/a/t");
  w.server.objects.erase("services/a/t");
  w.server.objects.erase("configmaps/a/t-config-1");
  w.create_job();
  const std::string new_uid = CasesWorld::uid_of(w.job());
  w.run_for(20s);
  EXPECT_EQ(w.state_of("NameConflict"), "True");
  EXPECT_TRUE(contains(w.words_of("NameConflict"), "Pod/t-coordinator-0-1")) << w.words_of("NameConflict");
  EXPECT_TRUE(contains(w.words_of("NameConflict"), "terminating")) << w.words_of("NameConflict");
  EXPECT_EQ(w.pods(), old_pods);
  for (const std::string& name : old_pods) {
    EXPECT_EQ(controller_uid(w.server.objects.at("pods/a/" + name)), old_uid);
    w.server.objects.erase("pods/a/" + name);
  }
  w.run_for(5s);
  ASSERT_EQ(w.pods().size(), 5u) << "at once";
  for (const std::string& name : w.pods()) EXPECT_EQ(controller_uid(w.server.objects.at("pods/a/" + name)), new_uid);
  EXPECT_EQ(w.count("DELETE"), 0);
  EXPECT_EQ(w.state_of("NameConflict"), "False");
}

TEST(OperatorCases, OP_29_creates_while_being_deleted) {
  CasesWorld w;
  int pods_made = 0;
  w.server.intercept = [&](const HttpCall& call) -> MaybeReply {
    if (call.method != "POST" || !contains(call.target, "/pods?") || ++pods_made != 2) return std::nullopt;
    Json object = w.job();  // kubectl delete --cascade=foreground, while this request is on its way
    object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:01Z";
    object["metadata"]["finalizers"] = {"foregroundDeletion"};
    w.process->stores.jobs.put(w.server.put("trainingjobs", object));
    return std::nullopt;
  };
  w.create_job();
  w.run_for(30s);
  EXPECT_EQ(pods_made, 2);
  w.server.objects.clear();  // collected: dependents first, then the job
  w.run_for(30s);
  EXPECT_TRUE(w.server.objects.empty());
}

// The cache does not know yet that the job is going, and the status is as it was: the API server is asked.
TEST(OperatorCases, OP_29_also_where_the_cache_lags) {
  CasesWorld w;
  bool refuse = true;
  w.server.intercept = [&](const HttpCall& call) -> MaybeReply {
    if (refuse && call.method == "POST" && contains(call.target, "/pods?"))
      return answered(403, R"({"reason": "Forbidden", "message": "exceeded quota: team"})");
    return std::nullopt;
  };
  w.create_job();
  w.run_for(10s);
  Json object = w.job();
  object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:01Z";
  w.server.put("trainingjobs", object);
  w.hold_watches = true;
  refuse = false;
  const int creates = w.count("POST");
  w.run_for(60s);
  EXPECT_EQ(w.count("POST"), creates);
  EXPECT_TRUE(w.pods().empty());
}

TEST(OperatorCases, OP_47_write_outcome_unknown) {
  CasesWorld w;
  bool lost = false;
  w.server.intercept = [&](const HttpCall& call) -> MaybeReply {
    if (call.method != "POST" || !contains(call.body, "\"t-worker-2-1\"") || lost) return std::nullopt;
    lost = true;
    w.hold_watches = true;  // and no event wakes anybody
    return failed_call(Outcome::kUnknown);
  };
  w.create_job();
  w.run_for(30s);
  EXPECT_TRUE(lost);
  EXPECT_EQ(w.count("POST pods t-worker-2-1", " 201"), 1);
  EXPECT_EQ(w.pods().size(), 5u);
  EXPECT_EQ(w.count("POST pods", " 201"), 5);
}

TEST(OperatorCases, OP_52_training_stops_with_the_controller) {
  CasesWorld w;
  w.create_job();
  w.run_for(3s);
  w.set_all_pods("Running");
  w.run_for(3s);
  const std::set<std::string> uids = w.pod_uids();
  const int writes = w.server.writes();
  w.process.reset();  // for ten minutes
  w.clock.advance(10min);
  w.restart();
  w.run_for(5s);
  EXPECT_EQ(w.pod_uids(), uids);
  EXPECT_EQ(w.count("DELETE"), 0);
  EXPECT_EQ(w.count("POST pods"), 5);
  EXPECT_LE(w.server.writes(), writes + 2) << "the key, asked for again; the status";
  EXPECT_EQ(w.restarts(), 0);
}

}  // namespace
}  // namespace evenkeel::oper
