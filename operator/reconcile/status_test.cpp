#include "operator/reconcile/status.h"

#include <gtest/gtest.h>

#include "contract/job/schema.h"
#include "operator/reconcile/cluster_fake.h"
#include "operator/reconcile/text.h"

namespace evenkeel::oper {
namespace {

// A member that the CRD does not know would be pruned by the API server, and written again for ever.
void expect_declared(const Json& value, const contract::Field& field, const std::string& path) {
  if (value.is_array()) {
    ASSERT_EQ(field.items.size(), 1u) << path;
    for (const Json& item : value) expect_declared(item, field.items.front(), path + "[]");
    return;
  }
  if (!value.is_object()) return;
  for (const auto& [name, inner] : value.items()) {
    const contract::Field* known = nullptr;
    for (const contract::Field& member : field.fields) {
      if (member.name == name) known = &member;
    }
    ASSERT_NE(known, nullptr) << path << "." << name << " is not in the schema";
    expect_declared(inner, *known, path + "." + name);
  }
}

TEST(Status, every_member_is_declared_in_the_schema) {
  ClusterFake c;
  c.settle().run_all().settle().join_all();
  c.exit("t-worker-1", 70, R"({"reason":"x","exitCode":70})")
      .settle()
      .run_all()
      .advance(3)
      .settle()
      .join_all();
  c.exit("t-worker-1", 70).settle();
  c.report = c.make_report(contract::JobStage::kRunning, 20);
  c.report->progress.loss = c.report->progress.eval_loss = c.report->progress.accuracy =
      c.report->progress.samples_per_second = 0.5;
  c.report->balance.imbalance_ratio = 0.5;
  c.report->balance.slowest_rank = 1;
  c.report->balance.scaling_efficiency = 0.5;
  c.report->balance.rebalances = 2;
  c.report->diagnosis = {"Straggler", "rank 1", {0.1, 0.2, 0.3, 0.2, 0.2}};
  c.report->productive_seconds = {{"productive", 3.0}, {"inputWait", 1.0}};
  for (contract::ReplicaReport& replica : c.report->replicas) {
    replica.samples_per_second = replica.busy_seconds = replica.share = replica.relative_performance = 0.5;
  }
  c.run_all().advance(3).settle().run_all().settle().join_all(30);
  for (int i = 0; i < 3; ++i) expect_declared(c.status(), contract::status_schema(), "status");
  c.advance(10).exit("t-coordinator-0", 0).settle();
  expect_declared(c.status(), contract::status_schema(), "status");
}

TEST(Status, reads_back_what_it_writes) {
  ClusterFake c;
  c.settle().run_all().settle().join_all();
  c.exit("t-worker-1", 70).settle();
  EXPECT_TRUE(same_json(to_json(decode_status(c.status())), c.status())) << base::dump_json(c.status(), 2);
}

TEST(Status, conditions_keep_their_time_until_the_status_changes) {
  Conditions conditions;
  const auto start = base::parse_rfc3339("2026-01-01T00:00:00Z").value();
  set_condition(conditions, kConditionRunning, {false, "A", "a"}, 1, start);
  set_condition(conditions, kConditionRunning, {false, "B", "b"}, 2, start + std::chrono::seconds(9));
  EXPECT_EQ(conditions[kConditionRunning].last_transition_time, "2026-01-01T00:00:00Z");
  EXPECT_EQ(conditions[kConditionRunning].reason, "B");
  set_condition(conditions, kConditionRunning, {true, "C", "c"}, 2, start + std::chrono::seconds(9));
  EXPECT_EQ(conditions[kConditionRunning].last_transition_time, "2026-01-01T00:00:09Z");
}

TEST(Status, messages_are_valid_and_short_whatever_a_program_prints) {
  std::string nasty;
  for (int i = 0; i < 1365; ++i) nasty += "\xE2\x82\xAC";  // three bytes each
  nasty[1] = '\n';
  const std::string fitted = fit_text(nasty);
  EXPECT_LE(fitted.size(), kMaxMessageBytes);
  EXPECT_TRUE(base::parse_json("\"" + fitted + "\"").ok());
  EXPECT_EQ(fit_text("a\x01\"b"), "a \"b");
}

}  // namespace
}  // namespace evenkeel::oper
