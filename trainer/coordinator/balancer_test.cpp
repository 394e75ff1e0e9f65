#include "trainer/coordinator/balancer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "trainer/coordinator/balancer_fixture.h"

namespace evenkeel::trainer {
namespace {

using contract::RemedyState;

SimulatedJob job_with_slow_rank(SimulatedJob::Options options, double slowness, int steps) {
  SimulatedJob job(std::move(options));
  job.factor.back() = slowness;
  for (int i = 0; i < steps; ++i) job.step();
  return job;
}

TEST(Balancer, predicts_then_measures) {
  const SimulatedJob job = job_with_slow_rank({}, 2, 60);
  const BalanceState state = job.balancer->state();
  EXPECT_EQ(state.rebalances, 1);
  EXPECT_EQ(state.balanced, true) << state.reason;
  ASSERT_EQ(state.remedies.size(), 1u);
  EXPECT_EQ(state.remedies[0].state, RemedyState::kApplied);
  EXPECT_NE(state.remedies[0].action.find("rank 3"), std::string::npos);
  // 64 -> 37 units of 2 ms, and 2 ms of rest.
  EXPECT_NEAR(state.remedies[0].predicted_gain, 130.0 / 76 - 1, 1e-6);
  EXPECT_NEAR(state.remedies[0].measured_gain.value_or(0), 130.0 / 76 - 1, 1e-6);
  EXPECT_EQ(job.shares, (std::vector<std::int64_t>{37, 37, 36, 18}));
}

TEST(Balancer, off_does_nothing_and_observe_only_says_so) {
  SimulatedJob::Options options;
  options.config.mode = BalanceMode::kOff;
  EXPECT_FALSE(job_with_slow_rank(options, 2, 60).balancer->state().balanced);
  options.config.mode = BalanceMode::kObserve;
  const SimulatedJob job = job_with_slow_rank(options, 2, 60);
  const BalanceState state = job.balancer->state();
  EXPECT_EQ(job.changes, 0);
  EXPECT_EQ(state.rebalances, 0);
  EXPECT_EQ(state.balanced, false);
  EXPECT_NE(state.reason.find("Observe"), std::string::npos) << state.reason;
  ASSERT_EQ(state.remedies.size(), 1u);
  EXPECT_EQ(state.remedies[0].state, RemedyState::kNotAllowed);
  EXPECT_NEAR(state.remedies[0].predicted_gain, 130.0 / 76 - 1, 1e-6);
}

TEST(Balancer, takes_back_what_does_not_pay) {
  SimulatedJob job({});
  job.factor.back() = 2;
  while (job.changes == 0) ASSERT_TRUE(job.step() || job.steps < 50);
  job.factor = {2, 1, 1, 1};  // the neighbour that took its cores is with another rank now
  std::optional<BalanceDecision> decision;
  for (int i = 0; i < 60 && !decision; ++i) decision = job.step();
  ASSERT_TRUE(decision);
  ASSERT_EQ(decision->action, BalanceAction::kTakeBack);
  EXPECT_TRUE(decision->seconds_per_sample.empty());
  const BalanceState state = job.balancer->state();
  EXPECT_EQ(state.remedies.at(0).state, RemedyState::kReverted);
  EXPECT_LT(*state.remedies[0].measured_gain, state.remedies[0].predicted_gain / 2);
  EXPECT_EQ(state.rebalances, 2);
}

// Less than half of what was predicted, and half as fast again as before: the prediction was wrong, not the shares.
TEST(Balancer, keeps_a_gain_that_is_real_though_more_was_predicted) {
  SimulatedJob job({});
  job.factor.back() = 4;
  while (job.changes == 0) ASSERT_TRUE(job.step() || job.steps < 50);
  job.factor = {2, 2, 2, 8};  // all of them lost half of their cores
  for (int i = 0; i < 60; ++i) job.step();
  const BalanceState state = job.balancer->state();
  EXPECT_EQ(state.remedies.at(0).state, RemedyState::kApplied);
  EXPECT_GT(*state.remedies[0].measured_gain, 0.3);
  EXPECT_LT(*state.remedies[0].measured_gain, state.remedies[0].predicted_gain / 2);
  EXPECT_EQ(job.shares.back(), *std::ranges::min_element(job.shares));
}

TEST(Balancer, follows_a_rank_that_recovers_later) {
  SimulatedJob job = job_with_slow_rank({}, 2, 60);
  job.factor.back() = 1;
  for (int i = 0; i < 60; ++i) job.step();
  EXPECT_EQ(job.shares, (std::vector<std::int64_t>{32, 32, 32, 32}));
  EXPECT_EQ(job.changes, 2);
}

TEST(Balancer, work_that_rotates_is_no_reason) {
  SimulatedJob job({});
  for (int i = 0; i < 400; ++i) {
    std::fill(job.factor.begin(), job.factor.end(), 1.0);
    job.factor[static_cast<std::size_t>(i) % 4] = 2;
    job.step();
  }
  EXPECT_EQ(job.changes, 0);
}

TEST(Balancer, limits_are_kept_and_named) {
  SimulatedJob::Options options;
  options.batch_per_rank = 64;
  options.config.limits.granule = 16;
  SimulatedJob job = job_with_slow_rank(options, 2, 60);
  BalanceState state = job.balancer->state();
  EXPECT_EQ(job.shares, (std::vector<std::int64_t>{80, 80, 64, 32}));
  EXPECT_EQ(state.balanced, false);
  EXPECT_NE(state.reason.find("groups of 16"), std::string::npos) << state.reason;
  EXPECT_NEAR(*state.loss_left, (80 - 256 / 3.5) * 2 / (80 * 2 + 2), 1e-3);

  options.config.limits = {1, 0, {68, 68, 68, 68}};
  job = job_with_slow_rank(options, 2, 60);
  EXPECT_EQ(job.shares, (std::vector<std::int64_t>{68, 68, 68, 52}));
  EXPECT_NE(job.balancer->state().reason.find("the most samples"), std::string::npos);
}

TEST(Balancer, a_much_slower_rank_is_dropped_only_where_the_others_are_faster_and_enough) {
  SimulatedJob::Options options;
  options.config.limits.floor = 16;  // statistics of a batch need as many
  options.config.min_ranks = 3;
  const auto drop = [](SimulatedJob& job) {
    for (int i = 0; i < 150; ++i) {
      const auto decision = job.step();
      if (decision && decision->action == BalanceAction::kDropRank) return decision->rank;
    }
    return -1;
  };
  SimulatedJob job(options);
  job.carries_drops = false;
  job.factor[1] = 8;  // 16 of its samples take 128, three others need 43
  EXPECT_EQ(drop(job), 1);
  EXPECT_EQ(drop(job), -1) << "said once";
  options.config.min_ranks = 4;
  SimulatedJob few(options);
  few.factor[1] = 8;
  EXPECT_EQ(drop(few), -1);
  EXPECT_EQ(few.balancer->state().remedies.at(0).state, RemedyState::kNotAllowed);
  options.config.min_ranks = 3;
  options.config.limits.floor = 0;
  SimulatedJob useful(options);
  useful.factor[1] = 5;  // slow, but what it does is a help
  EXPECT_EQ(drop(useful), -1);
}

contract::Remedy drop_of(const SimulatedJob& job) {
  for (const contract::Remedy& remedy : job.balancer->state().remedies) {
    if (remedy.action.starts_with("go on without")) return remedy;
  }
  ADD_FAILURE() << "no rank was left out";
  return {};
}

SimulatedJob::Options floor_of_sixteen() {
  SimulatedJob::Options options;
  options.config.limits.floor = 16;
  options.config.min_ranks = 3;
  return options;
}

TEST(Balancer, a_rank_that_is_left_out_is_measured_and_stays_out_where_that_pays) {
  SimulatedJob job(floor_of_sixteen());
  job.factor[1] = 8;
  for (int i = 0; i < 150; ++i) job.step();
  EXPECT_TRUE(job.rests[1]);
  EXPECT_EQ(job.shares, (std::vector<std::int64_t>{43, 0, 43, 42}));
  EXPECT_FALSE(job.balancer->measuring());
  const contract::Remedy remedy = drop_of(job);
  EXPECT_EQ(remedy.action, "go on without rank 1");
  EXPECT_EQ(remedy.state, RemedyState::kApplied);
  // 16 samples of 16 ms, against 43 of 2; 2 ms of rest, of which a ring of three needs 8/9.
  EXPECT_NEAR(remedy.predicted_gain, 258 / (86 + 2 * 8.0 / 9) - 1, 0.01);
  EXPECT_NEAR(remedy.measured_gain.value_or(0), 258.0 / 88 - 1, 0.01);
}

TEST(Balancer, a_rank_that_is_left_out_for_nothing_is_brought_back) {
  SimulatedJob job(floor_of_sixteen());
  job.factor[1] = 8;
  while (!job.rests[1]) {
    job.step();
    ASSERT_LT(job.steps, 150);
  }
  job.factor = {8, 8, 8, 8};  // whatever it was, it was not this rank alone
  for (int i = 0; i < 60; ++i) job.step();
  EXPECT_FALSE(job.rests[1]);
  const contract::Remedy remedy = drop_of(job);
  EXPECT_EQ(remedy.state, RemedyState::kReverted);
  EXPECT_LT(*remedy.measured_gain, 0);
  for (int i = 0; i < 300; ++i) job.step();
  EXPECT_FALSE(job.rests[1]) << "once is enough";
}

TEST(Balancer, a_rank_whose_work_does_not_follow_its_share_is_left_out_after_shares_were_tried) {
  SimulatedJob::Options options;
  options.config.min_ranks = 3;
  SimulatedJob job(options);
  job.fixed_seconds[2] = 0.5;  // whatever its share
  for (int i = 0; i < 300; ++i) job.step();
  EXPECT_TRUE(job.rests[2]);
  const contract::Remedy remedy = drop_of(job);
  EXPECT_EQ(remedy.action, "go on without rank 2");
  EXPECT_NEAR(remedy.measured_gain.value_or(0), remedy.predicted_gain, 0.2 * remedy.predicted_gain);
}

TEST(Balancer, what_a_new_process_needs_is_learned_anew) {
  SimulatedJob job = job_with_slow_rank({}, 2, 60);
  job.balancer->reset_rank(3);
  job.balancer->regrouped(128);
  EXPECT_FALSE(job.balancer->in_force().at(3));
  EXPECT_TRUE(job.balancer->in_force().at(0));
  job.factor.back() = 1;  // it runs elsewhere now
  const std::int64_t before = job.steps;
  while (job.changes < 2 && job.steps < before + 25) job.step();
  EXPECT_EQ(job.changes, 2);
}

TEST(Balancer, varying_work_is_judged_by_its_units) {
  // Records of very different size: own work follows the units exactly, so no rank is slow.
  Balancer balancer([] {
    BalancerConfig config;
    config.global_batch = 64;
    return config;
  }());
  for (int i = 1; i <= 200; ++i) {
    StepWork step;
    step.step = i;
    for (int r = 0; r < 2; ++r) {
      RankWork rank;
      rank.samples = 32;
      rank.work = r == 0 ? 1000 : 2000;  // long records on rank 1, for long
      rank.compute_seconds = rank.work * 1e-4;
      step.ranks.push_back(rank);
    }
    step.step_seconds = 0.21;
    balancer.add(step, false);
    EXPECT_FALSE(balancer.decide(i + 4));
  }
}

TEST(Balancer, throttled_ranks_are_judged_over_their_periods) {
  // 20 ms steps; rank 2 has 0.6 of a core: it runs for 60 ms, then stands still for 40.
  SimulatedJob::Options options;
  options.batch_per_rank = 10;
  options.config.cpu_quotas = true;
  SimulatedJob job(options);
  job.quota[2] = 0.6;
  for (int i = 0; i < 300; ++i) job.step();
  EXPECT_GE(job.changes, 1);
  EXPECT_LT(job.shares[2], 9);
  EXPECT_GT(job.shares[2], 4);
}

// Rank 2 has half a core in periods of 100 ms, the others have whole ones; 10 to 20 ms of computation and some
// milliseconds of reduction, so that a step takes 20 to 60 ms. Where in a step the quota stops the rank is luck: in
// its own work, or in the reduction.
TEST(Balancer, a_rank_with_half_a_core_gets_the_share_that_its_quota_allows_and_keeps_it) {
  for (const double work : {0.010, 0.015, 0.020}) {
    for (const double reduction : {0.002, 0.006, 0.010}) {
      SimulatedJob::Options options;
      options.batch_per_rank = 64;
      options.seconds_per_sample = work / 64;
      options.noise = 0.05;
      options.reduction_seconds = reduction;
      options.config.cpu_quotas = true;
      SimulatedJob job(options);
      job.quota[2] = 0.5;
      const auto mean_step = [&](int steps) {
        double sum = 0;
        for (int i = 0; i < steps; ++i) {
          job.step();
          sum += job.step_seconds;
        }
        return sum / steps;
      };
      const double before = mean_step(40);
      mean_step(360);
      const int changes = job.changes;
      EXPECT_GE(changes, 1) << work << " " << reduction;
      mean_step(1600);
      const double after = mean_step(200);
      // With fewer samples the quota stops it no more, and it looks as fast as the others: it is not given them back.
      EXPECT_EQ(job.changes, changes) << work << " " << reduction;
      EXPECT_LT(job.shares[2], 45) << work << " " << reduction;
      EXPECT_GT(job.shares[2], 24) << work << " " << reduction;
      EXPECT_LT(after, 0.75 * before) << work << " " << reduction;
    }
  }
}

TEST(Balancer, ranks_that_are_away_count_nowhere) {
  Balancer balancer([] {
    BalancerConfig config;
    config.global_batch = 60;
    return config;
  }());
  std::optional<BalanceDecision> decision;
  for (int i = 1; i <= 60 && !decision; ++i) {
    StepWork step;
    step.step = i;
    for (int r = 0; r < 4; ++r) {
      if (r == 1) {
        step.ranks.push_back(away());
        continue;
      }
      RankWork rank;
      rank.samples = 20;
      rank.compute_seconds = r == 3 ? 0.2 : 0.1;
      step.ranks.push_back(rank);
    }
    step.step_seconds = 0.2;
    balancer.add(step, false);
    decision = balancer.decide(i + 4);
  }
  ASSERT_TRUE(decision);
  EXPECT_FALSE(decision->seconds_per_sample[1]);
  EXPECT_NEAR(*decision->seconds_per_sample[3], 0.01, 1e-9);
}

}  // namespace
}  // namespace evenkeel::trainer
