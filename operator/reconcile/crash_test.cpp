// The operator dies after its n-th write, for every n, and starts again with an empty memory: the end is the
// same, and nothing is made or deleted twice.
#include <gtest/gtest.h>

#include "operator/reconcile/cluster_fake.h"

namespace evenkeel::oper {
namespace {

using Scenario = void (*)(ClusterFake&);

void succeeds(ClusterFake& c) {
  c.settle().run_all().settle().join_all();
  c.exit("t-coordinator-0", 0,
         contract::termination_message(c.make_report(contract::JobStage::kCompleted, 100)))
      .settle();
  c.advance(20).settle();
}

void restarts(ClusterFake& c) {
  c.settle().run_all().settle().join_all();
  c.exit("t-worker-1", 70).settle().run_all().settle().join_all();
  c.exit("t-worker-2", 70).settle().advance(1).settle().run_all().settle().join_all();
}

void suspends_and_resumes(ClusterFake& c) {
  c.settle().run_all().settle().join_all();
  c.patch_spec(R"({"suspend": true})").settle();
  c.advance(10).patch_spec(R"({"suspend": false})").settle().run_all().settle().join_all();
}

void fails(ClusterFake& c) {
  c.settle().run_all().settle().join_all();
  c.exit("t-worker-3", 65).settle();
}

void loses_pods_slowly(ClusterFake& c) {
  c.keep_deleted = true;
  c.settle().run_all().settle().join_all();
  c.delete_pod("t-worker-0").settle().advance(5).end_deleted().settle();
  c.run_all().settle().join_all();
}

struct Named {
  const char* name;
  Scenario play;
  const char* spec;
};

void replaces(ClusterFake& c) {
  c.settle().run_all().settle().join_all();
  c.exit("t-worker-1", 70).settle().run_all().settle().join_all();
  c.exit("t-worker-1", 70).settle().advance(1).settle().run_all().settle().join_all();
}

void replaces_two_and_the_coordinator(ClusterFake& c) {
  c.keep_deleted = true;
  c.settle().run_all().settle().join_all();
  c.exit("t-worker-0", 137).settle();
  c.delete_pod("t-coordinator-0").erase_pod("t-worker-3").settle();
  c.advance(70).end_deleted().settle().run_all().settle().join_all();
}

void loses_a_node(ClusterFake& c) {
  c.settle().run_all().settle().join_all();
  c.lose_node_of("t-worker-2").settle().run_all().settle().join_all();
  c.erase_pod("t-worker-2").settle().run_all().settle().join_all();
}

void suspends_in_an_incident(ClusterFake& c) {
  c.settle().run_all().settle().join_all();
  c.exit("t-worker-1", 70).settle();
  c.patch_spec(R"({"suspend": true})").settle();
  c.patch_spec(R"({"suspend": false})").settle().run_all().settle().join_all();
}

void scales(ClusterFake& c) {
  c.settle().run_all().settle().join_all();
  c.patch_spec(R"({"workers": {"replicas": 6}})").settle().run_all().settle().join_all();
  c.exit("t-worker-5", 70).settle().run_all().settle().join_all();
  c.patch_spec(R"({"workers": {"replicas": 2}})").settle().join_all();
  c.patch_spec(R"({"workers": {"replicas": 3}})").settle().run_all().settle().join_all();
}

constexpr char kWhole[] = R"({"restart": {"scope": "Job"}})";
constexpr char kScalable[] = R"({"workers": {"minReplicas": 2, "maxReplicas": 8}})";

const Named kScenarios[] = {{"succeeds", succeeds, "{}"},
                            {"restarts", restarts, kWhole},
                            {"suspends and resumes", suspends_and_resumes, "{}"},
                            {"fails", fails, R"({"cleanup": {"podPolicy": "All"}})"},
                            {"loses pods slowly, as a whole", loses_pods_slowly, kWhole},
                            {"loses pods slowly", loses_pods_slowly, "{}"},
                            {"replaces", replaces, "{}"},
                            {"replaces two and the coordinator", replaces_two_and_the_coordinator, "{}"},
                            {"loses a node", loses_a_node, "{}"},
                            {"suspends in an incident", suspends_in_an_incident, "{}"},
                            {"scales", scales, kScalable}};

int writes_of(const ClusterFake& cluster) {
  return static_cast<int>(cluster.log.size());
}

TEST(Crash, after_any_write_leads_to_the_same_end) {
  for (const Named& scenario : kScenarios) {
    ClusterFake calm(scenario.spec);
    scenario.play(calm);
    ASSERT_TRUE(calm.broken.empty()) << scenario.name << ": " << calm.broken.front();
    for (int n = 1; n <= writes_of(calm); ++n) {
      ClusterFake c(scenario.spec);
      c.crash_after(n);
      scenario.play(c);
      EXPECT_EQ(c.end_state(), calm.end_state()) << scenario.name << ", crash after write " << n;
      EXPECT_EQ(c.count("create Pod"), calm.count("create Pod"))
          << scenario.name << ", crash after write " << n;
      EXPECT_EQ(c.count("delete Pod"), calm.count("delete Pod"))
          << scenario.name << ", crash after write " << n;
      EXPECT_TRUE(c.broken.empty()) << scenario.name << ", crash after write " << n << ": "
                                    << c.broken.front();
    }
  }
}

TEST(Crash, two_crashes_lead_to_the_same_end) {
  for (const Named& scenario : kScenarios) {
    ClusterFake calm(scenario.spec);
    scenario.play(calm);
    for (int n = 1; n <= writes_of(calm); n += 3) {
      ClusterFake c(scenario.spec);
      c.crash_after(n);
      try {
        c.step();
      } catch (const Crash&) {
      }
      c.crash_after(1);
      scenario.play(c);
      EXPECT_EQ(c.end_state(), calm.end_state()) << scenario.name << ", crashes after write " << n;
    }
  }
}

}  // namespace
}  // namespace evenkeel::oper
