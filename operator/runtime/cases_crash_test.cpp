// Operator cases: an operator that dies at any write, and one that is told of the past. An API server in memory.
#include <gtest/gtest.h>

#include <set>

#include "operator/runtime/cases_world.h"

namespace evenkeel::oper {
namespace {

using namespace std::chrono_literals;

using Scenario = void (*)(CasesWorld&);

void succeeds(CasesWorld& w) {
  w.create_job();
  w.run_for(3s);
  w.set_all_pods("Running");
  w.run_for(2s);
  w.set_all_pods("Succeeded", 0);
  w.run_for(15s);
}

void fails_and_is_replaced(CasesWorld& w) {
  w.create_job();
  w.run_for(3s);
  w.set_all_pods("Running");
  w.run_for(2s);
  w.set_pod("t-worker-1-1", "Failed", 70);
  w.run_for(5s);
}

void suspends_and_resumes(CasesWorld& w) {
  w.create_job();
  w.run_for(3s);
  w.set_all_pods("Running");
  w.run_for(2s);
  w.edit({{"suspend", true}});
  w.run_for(5s);
  w.edit({{"suspend", false}});
  w.run_for(5s);
}

std::string end_state(const CasesWorld& w) {
  const Json status = w.status();
  std::string text = w.phase() + " attempt " + std::to_string(base::int_at(status, "attempt")) + " incarnation " +
                     std::to_string(base::int_at(status, "incarnation")) + " restarts " +
                     std::to_string(w.restarts());
  for (const auto& [key, object] : w.server.objects)
    text += " " + key + ":" + base::string_at(base::child(object, "status"), "phase");
  return text + "; creates " + std::to_string(w.count("POST", " 201")) + ", deletes " +
         std::to_string(w.count("DELETE", " 200"));
}

TEST(OperatorCases, OP_49_marker_written_before_the_effect) {
  for (const Scenario play : {succeeds, fails_and_is_replaced, suspends_and_resumes}) {
    CasesWorld calm;
    play(calm);
    ASSERT_GE(calm.server.writes(), 9);
    for (int write = 1; write <= calm.server.writes(); ++write) {
      CasesWorld w;
      w.kill_after(write);
      play(w);
      EXPECT_EQ(end_state(w), end_state(calm)) << "killed after write " << write;
    }
  }
}

// What a server that lags showed before the job was made anew. Nothing may follow from it.
void expect_no_effect_of(const std::map<std::string, Json>& past, const std::string& what) {
  CasesWorld w;
  w.create_job();  // the old one
  w.run_for(2s);
  w.server.objects.clear();
  w.create_job({{"workers", {{"replicas", 2}}}});
  w.run_for(2s);
  ASSERT_EQ(w.pods().size(), 3u);
  const std::set<std::string> uids = w.pod_uids();
  w.restart();  // and is told of the past
  for (const auto& [key, object] : past) {
    const std::string plural = key.substr(0, key.find('/'));
    Stores& stores = w.process->stores;
    if (plural == "trainingjobs") stores.jobs.put(object);
    if (plural == "pods") stores.pods.put(object);
    if (plural == "services") stores.services.put(object);
    if (plural == "configmaps") stores.config_maps.put(object);
  }
  w.hold_watches = true;
  int sent = 0;
  w.server.intercept = [&](const HttpCall& call) -> MaybeReply {
    sent += call.method == "POST" || call.method == "DELETE" ? 1 : 0;
    return std::nullopt;
  };
  w.run_for(20s);
  EXPECT_EQ(sent, 0) << what;
  w.hold_watches = false;
  w.run_for(10s);
  EXPECT_EQ(w.pod_uids(), uids) << what;
  EXPECT_EQ(w.count("DELETE"), 0) << what;
}

TEST(OperatorCases, OP_50_time_travel) {
  CasesWorld old;
  old.create_job();
  old.run_for(2s);
  const auto running = old.server.objects;
  expect_no_effect_of(running, "as it ran");
  auto part = running;
  part.erase("pods/a/t-worker-2-1");
  part.erase("pods/a/t-worker-3-1");
  expect_no_effect_of(part, "two pods not seen yet");
  auto failed = running;
  failed["pods/a/t-worker-1-1"]["status"] = {{"phase", "Failed"}, {"reason", "Evicted"}};
  expect_no_effect_of(failed, "a pod that was replaced later");
  old.edit({{"suspend", true}});
  old.run_for(3s);
  auto suspended = old.server.objects;
  suspended["services/a/t"] = running.at("services/a/t");
  suspended["pods/a/t-worker-0-1"] = running.at("pods/a/t-worker-0-1");
  expect_no_effect_of(suspended, "suspended, with a pod left");
  CasesWorld done;
  done.create_job();
  done.run_for(2s);
  done.set_all_pods("Succeeded", 0);
  done.run_for(2s);
  auto over = done.server.objects;
  over["trainingjobs/a/t"]["spec"]["cleanup"]["ttlSecondsAfterFinished"] = 1;
  expect_no_effect_of(over, "finished, its time to live over");
}

}  // namespace
}  // namespace evenkeel::oper
