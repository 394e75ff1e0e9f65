// One table for each policy.
#include <gtest/gtest.h>

#include "operator/reconcile/failure.h"
#include "operator/reconcile/progress.h"
#include "operator/reconcile/restart_policy.h"
#include "operator/reconcile/text.h"
#include "operator/reconcile/time_accounting.h"

namespace evenkeel::oper {
namespace {

using contract::RestartAction;

WallTimeValue at(int seconds) {
  return base::parse_rfc3339("2026-01-01T00:00:00Z").value() + std::chrono::seconds(seconds);
}

contract::RestartSpec default_rules() {
  contract::RestartSpec restart;
  restart.rules = {{{64, 65, 69, 76, 78}, false, RestartAction::kFailJob},
                   {{}, true, RestartAction::kRestartIgnoringLimit}};
  return restart;
}

Failure exited(int code, bool disruption = false) {
  Failure failure;
  failure.exit_code = code;
  failure.disruption = disruption;
  failure.time = at(0);
  return failure;
}

TEST(RestartPolicy, the_first_rule_that_any_failure_matches_decides) {
  Failure lost;
  lost.disruption = true;
  struct Case {
    const char* what;
    std::vector<Failure> failures;
    RestartAction action;
    std::size_t culprit;
  };
  const Case cases[] = {
      {"plain failure", {exited(70)}, RestartAction::kRestart, 0},
      {"bad data", {exited(65)}, RestartAction::kFailJob, 0},
      {"a lost peer hides nothing", {exited(75), exited(75), exited(65)}, RestartAction::kFailJob, 2},
      {"the cause, not the echo", {exited(75), exited(137), exited(75)}, RestartAction::kRestart, 1},
      {"eviction takes peers along", {exited(75), lost, exited(75)}, RestartAction::kRestartIgnoringLimit, 1},
      {"node shutdown, 143", {exited(143, true)}, RestartAction::kRestartIgnoringLimit, 0},
      {"143 without a disruption", {exited(143)}, RestartAction::kRestart, 0},
  };
  for (const Case& test : cases) {
    const Verdict verdict = judge(default_rules(), test.failures);
    EXPECT_EQ(verdict.action, test.action) << test.what;
    EXPECT_EQ(verdict.culprit, test.culprit) << test.what;
  }
}

TEST(RestartPolicy, own_rules_replace_the_default) {
  contract::RestartSpec restart;
  restart.rules = {{{70}, false, RestartAction::kFailJob}, {{}, true, RestartAction::kRestart}};
  EXPECT_EQ(judge(restart, {exited(70)}).action, RestartAction::kFailJob);
  EXPECT_EQ(judge(restart, {exited(65)}).action, RestartAction::kRestart);
  EXPECT_EQ(judge(restart, {exited(143, true)}).action, RestartAction::kRestart);
}

TEST(RestartPolicy, waits_grow_from_nothing_to_five_minutes) {
  const std::int64_t expected[] = {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300};
  for (std::int64_t n = 0; n < 12; ++n)
    EXPECT_EQ(restart_delay(n, std::nullopt, at(0)).count(), expected[n]) << n;
  EXPECT_EQ(restart_delay(1000000, std::nullopt, at(0)).count(), 300);
  EXPECT_EQ(restart_delay(9, at(0), at(600)).count(), 0);
  EXPECT_EQ(restart_delay(9, at(0), at(599)).count(), 256);
}

TEST(RestartPolicy, only_a_lost_peer_is_waited_on_and_not_for_long) {
  Pod running;
  running.phase = PodPhase::kRunning;
  Pod over;
  over.phase = PodPhase::kFailed;
  EXPECT_EQ(wait_for_cause({exited(75)}, {running, over}, at(1)), at(5));
  EXPECT_EQ(wait_for_cause({exited(75)}, {running, over}, at(5)), std::nullopt);
  EXPECT_EQ(wait_for_cause({exited(75)}, {over}, at(1)), std::nullopt);
  EXPECT_EQ(wait_for_cause({exited(75), exited(70)}, {running, over}, at(1)), std::nullopt);
  EXPECT_EQ(wait_for_cause({exited(75)}, {running, over}, at(-100)), std::nullopt)
      << "a node's clock is ahead";
}

JobStatus status_at(Phase phase, const std::string& pods_reason, const char* time = "{}") {
  JobStatus status;
  status.phase = phase;
  status.start_time = at(0);
  status.time = base::parse_json(time).value();
  set_condition(status.conditions, kConditionPodsReady, {false, pods_reason, ""}, 1, at(0));
  return status;
}

TEST(TimeAccounting, waiting_is_booked_under_what_it_waited_for) {
  const std::pair<const char*, const char*> cases[] = {
      {"Creating", "scheduling"},      {"Unschedulable", "scheduling"}, {"ImagePull", "imagePull"},
      {"Starting", "startup"},         {"AllRunning", "rendezvous"},    {"Terminating", "restart"},
      {"QuotaExceeded", "scheduling"}, {"something new", "scheduling"}};
  for (const auto& [reason, cause] : cases) {
    const Json time = book_time(status_at(Phase::kStarting, reason), std::nullopt, at(7));
    EXPECT_EQ(time["activeSeconds"], 7) << reason;
    EXPECT_EQ(time["unproductiveSeconds"][cause], 7.0) << reason;
  }
  EXPECT_EQ(book_time(status_at(Phase::kRestarting, "AllRunning"), std::nullopt,
                      at(7))["unproductiveSeconds"]["restart"],
            7.0);
}

TEST(TimeAccounting, nothing_is_booked_twice_and_nothing_after_the_end) {
  const char* booked = R"({"activeSeconds": 5, "unproductiveSeconds": {"scheduling": 5, "suspended": 100}})";
  const Json time = book_time(status_at(Phase::kStarting, "Creating", booked), std::nullopt, at(107));
  EXPECT_EQ(time["activeSeconds"], 7);
  EXPECT_EQ(time["unproductiveSeconds"]["scheduling"], 7.0);
  EXPECT_TRUE(same_json(book_time(status_at(Phase::kSucceeded, "", booked), std::nullopt, at(9999)),
                        base::parse_json(booked).value()));
  EXPECT_TRUE(same_json(book_time(status_at(Phase::kStarting, "", booked), std::nullopt, at(3)),
                        base::parse_json(booked).value()))
      << "the clock went back";
}

TEST(TimeAccounting, running_time_is_shared_as_the_coordinator_measured) {
  contract::JobReport report;
  report.productive_seconds = {{"productive", 60.0}, {"stragglerWait", 20.0}, {"startup", 500.0}};
  const Json time = book_time(status_at(Phase::kRunning, ""), report, at(40));
  EXPECT_EQ(time["productiveSeconds"], 30.0);
  EXPECT_EQ(time["unproductiveSeconds"]["stragglerWait"], 10.0);
  EXPECT_FALSE(time["unproductiveSeconds"].contains("startup"));
  EXPECT_EQ(book_time(status_at(Phase::kRunning, ""), std::nullopt, at(40))["unproductiveSeconds"]["other"],
            40.0);
}

contract::JobReport report_at(std::int64_t step) {
  contract::JobReport report;
  report.stage = contract::JobStage::kRunning;
  report.progress.step = step;
  report.progress.target_steps = 1000;
  report.progress.samples_per_second = 1234.5678;
  report.progress.eta_seconds = 125.0;
  report.balance.imbalance_ratio = 0.123456;
  return report;
}

TEST(Progress, an_equal_report_makes_an_equal_status_whatever_the_time) {
  JobStatus status;
  apply_report(status, report_at(10), {}, at(0));
  const Json first = status.progress;
  EXPECT_EQ(first["percent"], 1);
  EXPECT_EQ(first["samplesPerSecond"], 1234.6);
  EXPECT_EQ(first["estimatedCompletionTime"], "2026-01-01T00:02:05Z");
  EXPECT_EQ(status.balance["imbalanceRatio"], 0.123);
  apply_report(status, report_at(10), {}, at(50));
  EXPECT_TRUE(same_json(status.progress, first));
  apply_report(status, report_at(11), {}, at(50));
  EXPECT_EQ(status.progress["estimatedCompletionTime"], "2026-01-01T00:02:55Z");
}

TEST(Progress, a_gathering_attempt_does_not_erase_what_the_last_one_reached) {
  JobStatus status;
  apply_report(status, report_at(10), {}, at(0));
  contract::JobReport fresh = report_at(0);
  fresh.stage = contract::JobStage::kRendezvous;
  apply_report(status, fresh, {}, at(1));
  EXPECT_EQ(status.progress["step"], 10);
}

TEST(Progress, a_large_job_shows_its_slowest_ranks) {
  contract::JobReport report = report_at(1);
  for (int rank = 0; rank < 100; ++rank) {
    contract::ReplicaReport replica;
    replica.rank = rank;
    replica.relative_performance = rank == 77 ? 0.4 : 1.0;
    report.replicas.push_back(replica);
  }
  JobStatus status;
  apply_report(status, report, {}, at(0));
  ASSERT_EQ(status.replicas.size(), 8u);
  EXPECT_EQ(status.replicas.back()["rank"], 77);
}

TEST(Progress, remedies_stand_in_the_status_best_first_and_not_too_many) {
  contract::JobReport report = report_at(10);
  report.diagnosis.remedies = {
      {"shares by speed", 0.4567, 0.4321, contract::RemedyState::kApplied, std::nullopt},
      {"batch x2", 0.1, std::nullopt, contract::RemedyState::kNotAllowed, 0.05}};
  JobStatus status;
  apply_report(status, report, {}, at(0));
  const Json& remedies = status.diagnosis["remedies"];
  ASSERT_EQ(remedies.size(), 2u);
  EXPECT_EQ(remedies[0]["predictedGain"], 0.457);
  EXPECT_EQ(remedies[0]["measuredGain"], 0.432);
  EXPECT_EQ(remedies[0]["state"], "Applied");
  EXPECT_FALSE(remedies[1].contains("measuredGain"));
  report.diagnosis.remedies.resize(30);
  apply_report(status, report, {}, at(0));
  EXPECT_EQ(status.diagnosis["remedies"].size(), 8u);
}

TEST(Progress, what_was_done_stays_in_the_status_however_little_it_gained) {
  contract::JobReport report = report_at(10);
  report.diagnosis.remedies.assign(
      12, {"cache in memory", 0.5, std::nullopt, contract::RemedyState::kProposed, std::nullopt});
  report.diagnosis.remedies.push_back(
      {"shares by speed", 0.4, -0.1, contract::RemedyState::kReverted, std::nullopt});
  JobStatus status;
  apply_report(status, report, {}, at(0));
  ASSERT_EQ(status.diagnosis["remedies"].size(), 8u);
  EXPECT_EQ(status.diagnosis["remedies"][7]["state"], "Reverted");
}

TEST(Progress, a_remedy_is_told_when_it_is_applied_and_when_it_is_taken_back) {
  contract::JobReport report = report_at(10);
  JobStatus before, after;
  report.diagnosis.remedies = {
      {"batch 64 -> 256", 1.5, std::nullopt, contract::RemedyState::kProposed, std::nullopt}};
  apply_report(before, report, {}, at(0));
  EXPECT_TRUE(remedy_events(Json(), before.diagnosis).empty());
  report.diagnosis.remedies[0].state = contract::RemedyState::kApplied;
  apply_report(after, report, {}, at(0));
  auto events = remedy_events(before.diagnosis, after.diagnosis);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].reason, "RemedyApplied");
  EXPECT_EQ(events[0].message, "batch 64 -> 256: predicted gain 150%");
  EXPECT_TRUE(remedy_events(after.diagnosis, after.diagnosis).empty());
  before = after;
  report.diagnosis.remedies[0].state = contract::RemedyState::kReverted;
  report.diagnosis.remedies[0].measured_gain = 0.25;
  report.diagnosis.remedies.push_back({"shares by speed, for rank 1", 0.3, 0.2, contract::RemedyState::kApplied, std::nullopt});
  apply_report(after, report, {}, at(0));
  events = remedy_events(before.diagnosis, after.diagnosis);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].reason, "RemedyReverted");
  EXPECT_EQ(events[0].message, "batch 64 -> 256: taken back, predicted gain 150%, measured 25%");
  EXPECT_EQ(events[1].message, "shares by speed, for rank 1: predicted gain 30%, measured 20%");
  // The same once more, for the same rank.
  before = after;
  report.diagnosis.remedies.push_back(report.diagnosis.remedies[1]);
  apply_report(after, report, {}, at(0));
  EXPECT_EQ(remedy_events(before.diagnosis, after.diagnosis).size(), 1u);
}

TEST(Balance, shares_that_follow_a_slow_rank_are_balanced) {
  contract::JobReport report = report_at(1);
  report.replicas.resize(1);
  report.replicas[0].relative_performance = 0.5;
  report.balance.balanced = true;
  EXPECT_TRUE(judge_balance(report, 0.75, false)->status);
  report.balance.balanced = false;
  report.balance.reason = "groups of 16 samples stay together";
  EXPECT_EQ(judge_balance(report, 0.75, true)->reason, "Straggler");
  EXPECT_EQ(judge_balance(report, 0.75, true)->message, report.balance.reason);
  report.replicas[0].relative_performance = 0.9;
  EXPECT_EQ(judge_balance(report, 0.75, true)->reason, "LimitedShares");
}

TEST(Balance, does_not_flap_around_the_threshold) {
  contract::JobReport report = report_at(1);
  EXPECT_FALSE(judge_balance(report, 0.75, true).has_value());
  report.replicas.resize(1);
  const std::pair<double, std::pair<bool, bool>> cases[] = {
      {0.5, {false, false}},
      {0.77, {true, false}},
      {0.9, {true, true}}};  // performance -> (was balanced, was not)
  for (const auto& [performance, expected] : cases) {
    report.replicas[0].relative_performance = performance;
    EXPECT_EQ(judge_balance(report, 0.75, true)->status, expected.first) << performance;
    EXPECT_EQ(judge_balance(report, 0.75, false)->status, expected.second) << performance;
  }
}

}  // namespace
}  // namespace evenkeel::oper
