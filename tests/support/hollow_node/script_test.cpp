#include "tests/support/hollow_node/script.h"

#include <gtest/gtest.h>

#include "contract/labels.h"

namespace evenkeel::support {
namespace {

using base::Json;

HollowScript script_of(const std::string& text) {
  auto script = parse_script(*base::parse_json(text));
  EXPECT_TRUE(script.ok()) << (script.ok() ? "" : script.error().message);
  return script.ok() ? *script : HollowScript{};
}

PodFacts pod_of(const std::string& role, std::int64_t rank, const std::string& phase = "Pending") {
  PodFacts pod;
  pod.job = "j";
  pod.job_uid = "u";
  pod.role = role;
  pod.rank = rank;
  pod.phase = phase;
  return pod;
}

PodMoment at(std::int64_t ms) {
  return {ms, ms, ms, "2026-01-01T00:00:00Z", "10.0.0.1"};
}

TEST(HollowScript, a_rule_that_counts_once_is_for_the_first_pod_of_each_job) {
  const HollowScript script = script_of(R"({"rules": [{"role": "worker", "rank": 3, "once": true, "do": "exit", "exitCode": 65},
                                                      {"role": "coordinator", "do": "neverReady"}]})");
  RuleUses uses;
  EXPECT_EQ(choose_rule(script, pod_of("worker", 3), uses), 0u);
  EXPECT_EQ(choose_rule(script, pod_of("worker", 2), uses), std::nullopt);
  EXPECT_EQ(choose_rule(script, pod_of("coordinator", 0), uses), 1u);
  uses[{0, "u"}] = 1;
  EXPECT_EQ(choose_rule(script, pod_of("worker", 3), uses), std::nullopt);
  PodFacts other = pod_of("worker", 3);
  other.job_uid = "v";
  EXPECT_EQ(choose_rule(script, other, uses), 0u);
}

TEST(HollowScript, the_next_step_follows_from_phase_behaviour_and_time) {
  struct Row {
    std::string name, phase;
    Behaviour behaviour;
    std::int64_t ms;
    Step step;
    std::int64_t wait_ms;
    std::string patched_phase;
  };
  const HollowScript script = script_of(R"({"startMs": 20, "terminateMs": 50})");
  const std::vector<Row> rows = {
      {"not yet", "Pending", {}, 5, Step::kWait, 15, ""},
      {"starts", "Pending", {}, 20, Step::kPatchStatus, 0, "Running"},
      {"runs for ever", "Running", {}, 1 << 30, Step::kNothing, 0, ""},
      {"stays pending", "Pending", {Fate::kNeverScheduled, 0, 0, ""}, 999, Step::kNothing, 0, ""},
      {"will succeed", "Running", {Fate::kExit, 100, 0, ""}, 40, Step::kWait, 60, ""},
      {"succeeds", "Running", {Fate::kExit, 100, 0, ""}, 100, Step::kPatchStatus, 0, "Succeeded"},
      {"fails", "Running", {Fate::kExit, 0, 65, ""}, 0, Step::kPatchStatus, 0, "Failed"},
      {"has failed", "Failed", {Fate::kExit, 0, 65, ""}, 999, Step::kNothing, 0, ""},
      {"never ready", "Running", {Fate::kNeverReady, 0, 0, ""}, 999, Step::kNothing, 0, ""},
      {"evicted", "Running", {Fate::kEvicted, 0, 0, ""}, 0, Step::kPatchStatus, 0, "Failed"},
      {"node lost", "Running", {Fate::kNodeLost, 0, 0, ""}, 0, Step::kPatchStatus, 0, ""},
      {"bound first", "Pending", {Fate::kNodeLost, 0, 0, ""}, 20, Step::kBind, 0, ""},
  };
  for (const Row& row : rows) {
    const Decision next = decide(pod_of("worker", 1, row.phase), row.behaviour, script, at(row.ms));
    EXPECT_EQ(next.step, row.step) << row.name;
    EXPECT_EQ(next.wait_ms, row.wait_ms) << row.name;
    EXPECT_EQ(base::string_at(next.status, "phase"), row.patched_phase) << row.name;
  }
}

TEST(HollowScript, a_deleted_pod_goes_in_time_but_not_from_a_lost_node) {
  const HollowScript script = script_of(R"({"terminateMs": 50})");
  PodFacts pod = pod_of("worker", 1, "Running");
  pod.deleting = true;
  EXPECT_EQ(decide(pod, {}, script, at(49)).step, Step::kWait);
  EXPECT_EQ(decide(pod, {}, script, at(50)).step, Step::kRemove);
  const Behaviour lost{Fate::kNodeLost, 0, 0, ""};
  EXPECT_EQ(decide(pod, lost, script, at(50)).step, Step::kRemove) << "the node is not lost yet";
  pod.disrupted = true;
  EXPECT_EQ(decide(pod, lost, script, at(50)).step, Step::kNothing);
  pod.deleting = false;
  EXPECT_EQ(decide(pod, lost, script, at(50)).step, Step::kDelete);
}

TEST(HollowScript, the_status_says_what_a_kubelet_would) {
  const Decision run = decide(pod_of("worker", 1), {}, {}, at(0));
  EXPECT_EQ(run.status["podIP"], "10.0.0.1");
  EXPECT_EQ(run.status["conditions"][0]["status"], "True");
  EXPECT_EQ(run.status["containerStatuses"][0]["name"], contract::kContainerName);
  const Decision unready = decide(pod_of("worker", 1), {Fate::kNeverReady, 0, 0, ""}, {}, at(0));
  EXPECT_EQ(unready.status["phase"], "Running");
  EXPECT_EQ(unready.status["conditions"][0]["status"], "False");
  const Decision end = decide(pod_of("worker", 1, "Running"), {Fate::kExit, 0, 65, "bad data"}, {}, at(0));
  const Json& terminated = end.status["containerStatuses"][0]["state"]["terminated"];
  EXPECT_EQ(terminated["exitCode"], 65);
  EXPECT_EQ(terminated["message"], "bad data");
  const Decision evicted = decide(pod_of("worker", 1, "Running"), {Fate::kEvicted, 0, 0, ""}, {}, at(0));
  EXPECT_EQ(evicted.status["conditions"][1]["type"], "DisruptionTarget");
  EXPECT_EQ(evicted.status["conditions"][1]["status"], "True");
}

TEST(HollowScript, a_pod_is_known_by_its_labels) {
  const PodFacts facts = facts_of_pod(Json{
      {"metadata",
       {{"uid", "1"},
        {"name", "j-worker-3-2"},
        {"namespace", "a"},
        {"deletionTimestamp", "2026-01-01T00:00:00Z"},
        {"labels",
         {{contract::kLabelJobName, "j"}, {contract::kLabelRole, "worker"}, {contract::kLabelRank, "3"},
          {contract::kLabelAttempt, "1"}, {contract::kLabelIncarnation, "2"}}}}},
      {"spec", {{"nodeName", "n"}}},
      {"status", {{"phase", "Running"}, {"conditions", Json::array({{{"type", "DisruptionTarget"}, {"status", "True"}}})}}}});
  EXPECT_EQ(facts.rank, 3);
  EXPECT_EQ(facts.attempt, 1);
  EXPECT_EQ(facts.incarnation, 2);
  EXPECT_TRUE(facts.bound && facts.deleting && facts.disrupted);
}

TEST(HollowScript, a_typing_mistake_is_an_error_that_names_it) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {R"({"rule": []})", "rule"},
      {R"({"startMs": "5"})", "startMs"},
      {R"({"rules": [{"do": "exit", "role": 1}]})", "role"},
      {R"({"rules": [{"do": "exits"}]})", "exits"},
      {R"({"rules": [{"do": "exit", "rang": 3}]})", "rang"},
      {R"({"rules": [{"do": "exit", "exitCode": 256}]})", "256"},
  };
  for (const auto& [text, word] : rows) {
    const auto script = parse_script(*base::parse_json(text));
    ASSERT_FALSE(script.ok()) << text;
    EXPECT_NE(script.error().message.find(word), std::string::npos) << script.error().message;
  }
}

TEST(HollowScript, addresses_differ) {
  EXPECT_EQ(pod_ip(0), "10.0.0.1");
  EXPECT_EQ(pod_ip(255), "10.0.1.0");
  EXPECT_EQ(pod_ip(70'000), "10.1.17.113");
}

}  // namespace
}  // namespace evenkeel::support
