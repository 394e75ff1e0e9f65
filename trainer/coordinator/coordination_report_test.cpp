// What a job's report says while it runs: shares that move, remedies with their gains, the waterfall, history.
#include <gtest/gtest.h>

#include <algorithm>

#include "trainer/coordinator/coordination_story.h"

namespace evenkeel::trainer {
namespace {

using contract::RemedyState;
using testing::Story;

// Own work is 1 ms a sample, twice that on the last rank; 5 ms of network after the slowest.
void do_step(Story& story, std::int64_t step, int ranks, double slowness) {
  const contract::StepPlan& plan = story.plans.at(step);
  std::vector<double> own;
  for (int r = 0; r < ranks; ++r) {
    const auto at = static_cast<std::size_t>(r);
    const double samples = static_cast<double>(plan.cuts[at + 1] - plan.cuts[at]);
    own.push_back(0.001 * samples * (r == ranks - 1 ? slowness : 1));
  }
  const double seconds = *std::max_element(own.begin(), own.end()) + 0.005;
  story.now += seconds;
  for (int r = 0; r < ranks; ++r) {
    contract::Commit commit = test_commit(plan, r, own[static_cast<std::size_t>(r)]);
    commit.step_seconds = seconds;
    story.says(r, contract::MessageType::kCommit, commit);
  }
}

std::int64_t share_of(const Story& story, std::int64_t step, std::size_t rank) {
  const auto& cuts = story.plans.at(step).cuts;
  return cuts[rank + 1] - cuts[rank];
}

TEST(CoordinationReport, a_slow_rank_is_relieved_and_the_gain_stands_beside_what_was_predicted) {
  contract::TrainerConfig config = test_config(4, 256);
  config.spec.balance_mode = contract::BalanceMode::kRebalance;
  Story story(config, 256 * 200);
  story.starts();
  for (std::int64_t step = 1; step <= 100; ++step) do_step(story, step, 4, 2);
  EXPECT_EQ(share_of(story, 10, 3), 64);
  EXPECT_NEAR(static_cast<double>(share_of(story, 30, 3)), 256 / 3.5 / 2, 1.0);
  const contract::JobReport report = story.report();
  EXPECT_GE(report.balance.rebalances, 1);
  EXPECT_EQ(report.balance.mode, "Rebalance");
  EXPECT_EQ(report.balance.balanced, true) << report.balance.reason;
  ASSERT_FALSE(report.diagnosis.remedies.empty());
  const contract::Remedy& remedy = report.diagnosis.remedies.front();
  EXPECT_EQ(remedy.state, RemedyState::kApplied);
  EXPECT_NEAR(remedy.predicted_gain, 133.0 / (5 + 256 / 3.5) - 1, 0.03);
  EXPECT_NEAR(remedy.measured_gain.value_or(0), remedy.predicted_gain, 0.02);
  EXPECT_NEAR(*report.replicas[3].relative_performance, 0.5, 0.01) << "it is still known to be slow";
  EXPECT_LT(*report.balance.imbalance_ratio, 0.03);
}

// The shares are changed in the last steps, and what is left under the new ones is no window.
TEST(CoordinationReport, a_job_that_ends_soon_after_a_change_says_what_it_was_before) {
  contract::TrainerConfig config = test_config(4, 256);
  config.spec.balance_mode = contract::BalanceMode::kRebalance;
  config.spec.training.epochs.reset();
  config.spec.training.steps = 40;
  Story story(config, 256 * 200);
  story.starts();
  for (std::int64_t step = 1; step <= 40; ++step) do_step(story, step, 4, step <= 24 ? 1 : 2);
  EXPECT_EQ(story.report().diagnosis.verdict, "Measuring");
  for (int r = 0; r < 4; ++r)
    story.says(r, contract::MessageType::kEvaluated, contract::Evaluated{40, 0, 5.0, 9, 10, 0.1});
  const contract::JobReport report = story.report();
  ASSERT_GE(report.balance.rebalances, 1);
  EXPECT_EQ(report.stage, contract::JobStage::kCompleted);
  EXPECT_NE(report.diagnosis.verdict, "Measuring") << report.diagnosis.message;
  EXPECT_NE(report.diagnosis.message.find("; as it was before the change at step "), std::string::npos) << report.diagnosis.message;
}

TEST(CoordinationReport, the_quota_periods_of_the_heartbeats_name_the_cause) {
  contract::TrainerConfig config = test_config(4, 64);
  Story story(config, 64 * 400);
  for (int r = 0; r < 4; ++r) {
    contract::Join join = test_join(r, 64 * 400);
    join.cpu_limit = r == 1 ? 0.2 : 0.4;
    story.joins(r, join);
  }
  story.all_ready();
  // Rank 1 is stopped in all its periods; more than half of the step is waiting that no timer explains.
  for (std::int64_t step = 1; step <= 60; ++step) {
    story.now += 0.04;
    for (int r = 0; r < 4; ++r) {
      contract::Commit commit = test_commit(story.plans.at(step), r, 0.016);
      commit.step_seconds = 0.04;
      story.says(r, contract::MessageType::kCommit, commit);
      story.says(r, contract::MessageType::kHeartbeat,
                contract::Heartbeat{step, "collective_wait", 10 * step, r == 1 ? 10 * step : 0});
    }
  }
  const contract::JobReport report = story.report();
  EXPECT_EQ(report.diagnosis.verdict, "Straggler") << report.diagnosis.message;
  EXPECT_EQ(report.diagnosis.message.rfind("rank 1, stopped by its CPU limit of 0.20 cores in 100% of", 0), 0u)
      << report.diagnosis.message;
}

// Rank 3 has half a core: 64 samples take it 120 ms, and with a share that its quota allows it looks as fast as the
// others. It is not given the samples back, and it is still known.
TEST(CoordinationReport, a_throttled_rank_is_relieved_for_good) {
  contract::TrainerConfig config = test_config(4, 256);
  config.spec.balance_mode = contract::BalanceMode::kRebalance;
  Story story(config, 256 * 400);
  for (int r = 0; r < 4; ++r) {
    contract::Join join = test_join(r, 256 * 400);
    join.cpu_limit = r == 3 ? 0.5 : 1;
    story.joins(r, join);
  }
  story.all_ready();
  std::int64_t periods = 0, stopped = 0;
  for (std::int64_t step = 1; step <= 300; ++step) {
    const contract::StepPlan& plan = story.plans.at(step);
    std::vector<double> own;
    for (std::size_t r = 0; r < 4; ++r)
      own.push_back(0.001 * static_cast<double>(plan.cuts[r + 1] - plan.cuts[r]));
    const double others = std::max({own[0], own[1], own[2]}) + 0.005;
    const double quota = 2 * own[3];
    const bool throttled = quota > others;
    if (throttled) own[3] = quota;
    const double seconds = std::max(others, quota);
    story.now += seconds;
    periods += 1;
    stopped += throttled ? 1 : 0;
    for (int r = 0; r < 4; ++r) {
      contract::Commit commit = test_commit(plan, r, own[static_cast<std::size_t>(r)]);
      commit.step_seconds = seconds;
      story.says(r, contract::MessageType::kCommit, commit);
      story.says(r, contract::MessageType::kHeartbeat,
                 contract::Heartbeat{step, "forward", periods, r == 3 ? stopped : 0});
    }
  }
  const contract::JobReport report = story.report();
  EXPECT_LE(report.balance.rebalances, 2);
  EXPECT_LT(share_of(story, 300, 3), 45);
  EXPECT_EQ(report.balance.slowest_rank, 3);
  EXPECT_LT(*report.replicas[3].relative_performance, 0.7);
  EXPECT_EQ(report.diagnosis.verdict, "ScalingFine") << report.diagnosis.message;
  EXPECT_EQ(report.diagnosis.message.rfind("the shares fit the ranks' speed: rank 3 runs at", 0), 0u)
      << report.diagnosis.message;
}

TEST(CoordinationReport, off_and_observe_leave_the_shares_alone) {
  for (const auto mode : {contract::BalanceMode::kOff, contract::BalanceMode::kObserve}) {
    contract::TrainerConfig config = test_config(4, 256);
    config.spec.balance_mode = mode;
    Story story(config, 256 * 200);
    story.starts();
    for (std::int64_t step = 1; step <= 60; ++step) do_step(story, step, 4, 2);
    EXPECT_EQ(share_of(story, 60, 3), 64);
    const contract::JobReport report = story.report();
    EXPECT_EQ(report.balance.rebalances, 0);
    EXPECT_EQ(report.diagnosis.verdict, "Straggler");
    const auto shares = std::find_if(
        report.diagnosis.remedies.begin(), report.diagnosis.remedies.end(),
        [](const contract::Remedy& r) { return r.action.rfind("shares by speed", 0) == 0; });
    ASSERT_NE(shares, report.diagnosis.remedies.end());
    EXPECT_EQ(shares->state, RemedyState::kNotAllowed);
    EXPECT_NEAR(shares->predicted_gain, 133.0 / (5 + 256 / 3.5) - 1, 0.03);
  }
}

TEST(CoordinationReport, explains_itself_and_can_be_read_back) {
  contract::TrainerConfig config = test_config(3, 96);
  config.spec.balance_mode = contract::BalanceMode::kOff;
  Story story(config, 96 * 400);
  story.starts();
  for (std::int64_t step = 1; step <= 300; ++step) do_step(story, step, 3, 1.5);
  const contract::JobReport report = story.report();
  ASSERT_TRUE(report.waterfall);
  double seconds = 0;
  for (const contract::WaterfallTerm& term : report.waterfall->terms) seconds += term.seconds;
  EXPECT_NEAR(seconds, report.waterfall->step_seconds, 1e-9);
  EXPECT_EQ(report.waterfall->baseline, "none");
  ASSERT_FALSE(report.history.empty());
  EXPECT_LE(report.history.size(), contract::kMaxHistoryPoints);
  EXPECT_EQ(report.history.back().step, 300);
  EXPECT_EQ(report.history.back().ranks.size(), 3u);
  const auto back = contract::decode_report(*base::parse_json(base::dump_json(contract::to_json(report))));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(contract::to_json(*back), contract::to_json(report));
}

TEST(CoordinationReport, tune_off_offers_nothing) {
  contract::TrainerConfig config = test_config(2, 64);
  config.spec.tune_mode = contract::TuneMode::kOff;
  Story story(config, 64 * 200);
  story.starts();
  for (std::int64_t step = 1; step <= 60; ++step) do_step(story, step, 2, 2);
  EXPECT_TRUE(story.report().diagnosis.remedies.empty());
}

}  // namespace
}  // namespace evenkeel::trainer
