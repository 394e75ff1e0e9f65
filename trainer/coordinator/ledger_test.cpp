#include "trainer/coordinator/ledger.h"

#include <gtest/gtest.h>

#include <numeric>

namespace evenkeel::trainer {
namespace {

using Counts = std::vector<std::int64_t>;
constexpr contract::Fence kFence{1, 1, 1};

LedgerConfig epochs_config(std::int64_t samples, int ranks, std::int64_t batch, std::int64_t epochs) {
  LedgerConfig config;
  config.train_samples = samples;
  config.eval_samples = 10;
  config.ranks = ranks;
  config.global_batch = batch;
  config.epochs = epochs;
  return config;
}

Ledger make(const LedgerConfig& config) {
  auto ledger = Ledger::make(config);
  EXPECT_TRUE(ledger.ok());
  return std::move(ledger).value();
}

Counts shares_of(const contract::StepPlan& plan) {
  Counts shares;
  for (std::size_t r = 0; r + 1 < plan.cuts.size(); ++r) shares.push_back(plan.cuts[r + 1] - plan.cuts[r]);
  return shares;
}

// All plans to the end, four ahead of the commits as the coordinator issues them.
std::vector<contract::StepPlan> run_to_end(Ledger& ledger) {
  std::vector<contract::StepPlan> plans;
  for (;;) {
    while (ledger.issued_step() < ledger.committed().step + 4) {
      auto plan = ledger.plan_next(kFence);
      if (!plan) break;
      plans.push_back(*plan);
    }
    const contract::StepPlan* oldest = ledger.oldest_open();
    if (oldest == nullptr) return plans;
    EXPECT_TRUE(ledger.commit(oldest->step).ok());
  }
}

TEST(Ledger, steps_and_last_batches_of_cassava) {
  struct Row {
    std::int64_t batch;
    int ranks;
    std::int64_t steps, last;
    Counts shares;
  };
  const Row rows[] = {{64, 2, 89, 24, {12, 12}},
                      {256, 4, 23, 24, {6, 6, 6, 6}},
                      {512, 8, 12, 24, {3, 3, 3, 3, 3, 3, 3, 3}},
                      {320, 5, 18, 216, {43, 43, 44, 43, 43}}};
  for (const Row& row : rows) {
    Ledger ledger = make(epochs_config(5656, row.ranks, row.batch, 1));
    EXPECT_EQ(ledger.target_steps(), row.steps);
    const auto plans = run_to_end(ledger);
    ASSERT_EQ(static_cast<std::int64_t>(plans.size()), row.steps);
    EXPECT_EQ(plans.back().planned(), row.last);
    EXPECT_EQ(shares_of(plans.back()), row.shares) << row.batch;
    EXPECT_EQ(ledger.samples(), 5656);
  }
}

TEST(Ledger, uneven_last_batches_share_by_share) {
  struct Row {
    std::int64_t samples, batch;
    int ranks;
    std::int64_t steps;
    Counts last, consumed;
  };
  const Row rows[] = {{5, 4, 2, 2, {0, 1}, {2, 3}},
                      {101, 10, 2, 11, {1, 0}, {51, 50}},
                      {103, 4, 4, 26, {1, 1, 0, 1}, {26, 26, 25, 26}},
                      {9, 8, 4, 2, {0, 1, 0, 0}, {2, 3, 2, 2}},
                      {9, 4, 4, 3, {0, 0, 1, 0}, {2, 2, 3, 2}},
                      {20, 6, 3, 4, {1, 1, 0}, {7, 7, 6}}};
  for (const Row& row : rows) {
    Ledger ledger = make(epochs_config(row.samples, row.ranks, row.batch, 1));
    const auto plans = run_to_end(ledger);
    ASSERT_EQ(static_cast<std::int64_t>(plans.size()), row.steps) << row.samples;
    EXPECT_EQ(shares_of(plans.back()), row.last) << row.samples;
    EXPECT_EQ(ledger.consumed(), row.consumed) << row.samples;
  }
}

TEST(Ledger, the_next_epoch_starts_only_when_the_last_is_full) {
  Ledger ledger = make(epochs_config(1000, 3, 64, 2));
  const auto plans = run_to_end(ledger);
  ASSERT_EQ(plans.size(), 32u);
  EXPECT_EQ(shares_of(plans[15]), (Counts{14, 13, 13}));
  EXPECT_EQ(plans[15].epoch, 0);
  EXPECT_TRUE(plans[15].evaluate_after);
  EXPECT_EQ(plans[16].planned(), 64);
  EXPECT_EQ(plans[16].epoch, 1);
  EXPECT_EQ(plans[16].cuts.front(), 0);
}

TEST(Ledger, every_position_is_in_exactly_one_step_of_its_epoch) {
  for (const std::int64_t samples : {1, 2, 3, 7, 16, 31, 33, 100, 257}) {
    for (const std::int64_t batch : {1, 2, 5, 8, 64, 300}) {
      for (const int ranks : {1, 2, 3, 4, 7, 8}) {
        Ledger ledger = make(epochs_config(samples, ranks, batch, 2));
        std::vector<Counts> seen(2, Counts(static_cast<std::size_t>(samples), 0));
        Counts by_rank(static_cast<std::size_t>(ranks), 0);
        for (const auto& plan : run_to_end(ledger)) {
          ASSERT_EQ(plan.cuts.size(), static_cast<std::size_t>(ranks) + 1);
          for (std::size_t r = 0; r + 1 < plan.cuts.size(); ++r) {
            ASSERT_LE(plan.cuts[r], plan.cuts[r + 1]);
            by_rank[r] += plan.cuts[r + 1] - plan.cuts[r];
            for (auto at = plan.cuts[r]; at < plan.cuts[r + 1]; ++at) {
              ++seen.at(static_cast<std::size_t>(plan.epoch)).at(static_cast<std::size_t>(at));
            }
          }
        }
        for (const Counts& epoch : seen) EXPECT_EQ(epoch, Counts(epoch.size(), 1));
        EXPECT_EQ(ledger.consumed(), by_rank);
        EXPECT_EQ(ledger.samples(), 2 * samples);
        EXPECT_TRUE(ledger.complete());
      }
    }
  }
}

TEST(Ledger, a_restart_from_any_step_plans_the_same_rest) {
  const LedgerConfig config = epochs_config(53, 3, 8, 3);
  Ledger whole = make(config);
  const auto plans = run_to_end(whole);
  for (std::size_t cut = 0; cut <= plans.size(); ++cut) {
    Ledger first = make(config);
    for (std::size_t i = 0; i < cut; ++i) {
      ASSERT_TRUE(first.plan_next(kFence));
      ASSERT_TRUE(first.commit(static_cast<std::int64_t>(i) + 1).ok());
    }
    first.plan_next(kFence);  // issued, never committed: lost with the process, planned again
    Ledger second = make(config);
    contract::CheckpointPosition position;
    position.step = first.committed().step;
    position.epoch = first.committed().epoch;
    position.cursor = first.committed().cursor;
    position.consumed = first.consumed();
    ASSERT_TRUE(second.restore(position).ok());
    EXPECT_EQ(second.target_steps(), whole.target_steps());
    const auto rest = run_to_end(second);
    ASSERT_EQ(rest.size(), plans.size() - cut);
    for (std::size_t i = 0; i < rest.size(); ++i) EXPECT_EQ(rest[i].cuts, plans[cut + i].cuts);
    EXPECT_EQ(second.consumed(), whole.consumed());
  }
}

TEST(Ledger, shard_samples_are_the_shares_of_the_epoch) {
  Ledger ledger = make(epochs_config(53, 3, 8, 2));
  Counts epoch(3, 0);
  std::vector<Counts> expected;
  for (int i = 0; i < 14; ++i) {
    const auto plan = ledger.plan_next(kFence);
    ASSERT_TRUE(plan);
    for (std::size_t r = 0; r < 3; ++r) epoch[r] += plan->cuts[r + 1] - plan->cuts[r];
    if (plan->cuts.back() == 53) {
      expected.push_back(epoch);
      epoch.assign(3, 0);
    }
  }
  EXPECT_EQ(ledger.shard_samples(), expected[0]);
  for (std::int64_t step = 1; step <= 9; ++step) ASSERT_TRUE(ledger.commit(step).ok());
  EXPECT_EQ(ledger.shard_samples(), expected[1]);
}

TEST(Ledger, evaluation_and_checkpoints_come_where_they_are_asked_for) {
  LedgerConfig config = epochs_config(20, 2, 8, 4);  // 3 steps an epoch
  config.evaluate_every = 2;
  config.checkpoints = true;
  config.checkpoint_every_steps = 5;
  Ledger ledger = make(config);
  std::vector<std::int64_t> evaluations, checkpoints;
  for (const auto& plan : run_to_end(ledger)) {
    if (plan.evaluate_after) evaluations.push_back(plan.step);
    if (plan.checkpoint_after) checkpoints.push_back(plan.step);
  }
  EXPECT_EQ(evaluations, (Counts{6, 12}));
  EXPECT_EQ(checkpoints, (Counts{5, 10, 12}));
}

TEST(Ledger, evaluate_every_zero_is_the_end_only_and_steps_may_end_inside_an_epoch) {
  LedgerConfig config = epochs_config(20, 2, 8, 1);
  config.epochs.reset();
  config.steps = 5;
  config.evaluate_every = 0;
  Ledger ledger = make(config);
  const auto plans = run_to_end(ledger);
  ASSERT_EQ(plans.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(plans[i].evaluate_after, i == 4);
  EXPECT_EQ(ledger.committed().epoch, 1);
  EXPECT_EQ(ledger.committed().cursor, 16);
}

TEST(Ledger, a_stop_makes_the_next_plan_the_last_and_saves) {
  LedgerConfig config = epochs_config(1000, 2, 10, 1);
  config.checkpoints = true;
  Ledger ledger = make(config);
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(ledger.plan_next(kFence)->stop_after);
  ledger.request_stop();
  const auto plan = ledger.plan_next(kFence);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->step, 5);
  EXPECT_TRUE(plan->stop_after);
  EXPECT_TRUE(plan->checkpoint_after);
  EXPECT_FALSE(ledger.plan_next(kFence));
  EXPECT_TRUE(ledger.all_issued());
  for (std::int64_t step = 1; step <= 5; ++step) ASSERT_TRUE(ledger.commit(step).ok());
  EXPECT_FALSE(ledger.complete());
}

TEST(Ledger, a_stop_at_the_last_step_is_a_normal_end) {
  Ledger ledger = make(epochs_config(20, 2, 10, 1));
  ASSERT_TRUE(ledger.plan_next(kFence));
  ledger.request_stop();
  const auto plan = ledger.plan_next(kFence);
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->stop_after);
  EXPECT_TRUE(plan->evaluate_after);
}

TEST(Ledger, a_batch_changed_while_suspended_counts_from_the_position) {
  Ledger ledger = make(epochs_config(100, 2, 20, 2));
  contract::CheckpointPosition position;
  position.step = 7;
  position.epoch = 0;
  position.cursor = 70;
  position.consumed = {35, 35};
  ASSERT_TRUE(ledger.restore(position).ok());
  EXPECT_EQ(ledger.target_steps(), 7 + 2 + 5);
  run_to_end(ledger);
  EXPECT_EQ(ledger.samples(), 200);
}

// The rate was on its way from 20 to 40 samples a step, and goes on from there instead of jumping.
TEST(Ledger, a_restored_job_goes_on_with_the_batch_that_its_rate_was_for) {
  Ledger ledger = make(epochs_config(4000, 2, 40, 2));
  contract::CheckpointPosition position;
  position.step = 7;
  position.cursor = 70;
  position.consumed = {35, 35};
  position.rate_batch = 25;
  ASSERT_TRUE(ledger.restore(position).ok());
  const auto next = ledger.plan_next(kFence);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->global_batch, 40);
  EXPECT_NEAR(next->rate_batch, 25 + 15.0 / 100, 1e-9);
  // Of an older checkpoint nothing is known: the rate is for the batch.
  Ledger other = make(epochs_config(4000, 2, 40, 2));
  position.rate_batch = 0;
  ASSERT_TRUE(other.restore(position).ok());
  EXPECT_EQ(other.plan_next(kFence)->rate_batch, 40);
}

TEST(Ledger, restoring_a_finished_job_plans_nothing) {
  Ledger ledger = make(epochs_config(20, 2, 10, 3));
  contract::CheckpointPosition position;
  position.step = 6;
  position.epoch = 2;
  position.cursor = 20;
  position.consumed = {30, 30};
  ASSERT_TRUE(ledger.restore(position).ok());
  EXPECT_TRUE(ledger.complete());
  EXPECT_FALSE(ledger.plan_next(kFence));
}

TEST(Ledger, a_smaller_job_keeps_what_lost_ranks_consumed) {
  Ledger ledger = make(epochs_config(20, 2, 10, 3));
  contract::CheckpointPosition position;
  position.step = 2;
  position.epoch = 1;
  position.consumed = {7, 7, 6};
  ASSERT_TRUE(ledger.restore(position).ok());
  run_to_end(ledger);
  EXPECT_EQ(ledger.samples(), 60);
}

TEST(Ledger, bad_input_is_refused_with_its_reason) {
  EXPECT_FALSE(Ledger::make(epochs_config(0, 1, 1, 1)).ok());
  EXPECT_FALSE(Ledger::make(epochs_config(1, 0, 1, 1)).ok());
  EXPECT_FALSE(Ledger::make(epochs_config(1, 1, 0, 1)).ok());
  LedgerConfig both = epochs_config(1, 1, 1, 1);
  both.steps = 3;
  EXPECT_FALSE(Ledger::make(both).ok());

  Ledger ledger = make(epochs_config(20, 2, 10, 1));
  contract::CheckpointPosition position;
  position.cursor = 21;
  const auto status = ledger.restore(position);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("21"), std::string::npos);
}

TEST(Ledger, commits_out_of_order_are_our_bug) {
  Ledger ledger = make(epochs_config(20, 2, 10, 1));
  EXPECT_FALSE(ledger.commit(1).ok());
  ASSERT_TRUE(ledger.plan_next(kFence));
  EXPECT_FALSE(ledger.commit(2).ok());
  EXPECT_TRUE(ledger.commit(1).ok());
}

}  // namespace
}  // namespace evenkeel::trainer
