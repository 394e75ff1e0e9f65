#include "trainer/coordinator/remedies.h"

#include <gtest/gtest.h>

#include "trainer/coordinator/waterfall_fixture.h"

namespace evenkeel::trainer {
namespace {

using contract::Remedy;
using contract::RemedyState;

constexpr Baseline kBaseline{64, 0.096, 0.002, 0.100, BaselineSource::kMeasured};

struct Given {
  Findings findings;
  JobFacts job;
  std::vector<RankFacts> ranks;
  std::optional<NoiseScale> noise;
  ShareLimits limits;

  std::vector<PricedRemedy> prices() const { return price_remedies({findings, job, ranks, limits, noise}); }
  std::optional<PricedRemedy> price(RemedyKind kind) const {
    for (const PricedRemedy& one : prices()) {
      if (one.kind == kind) return one;
    }
    return std::nullopt;
  }
};

Given given(double total_ms, const std::vector<double>& n, const std::vector<double>& compute_ms,
            double input_ms, const std::optional<Baseline>& baseline = kBaseline) {
  const StepWork work = step_of(total_ms, n, compute_ms, input_ms);
  DiagnosisWindow window;
  for (int i = 0; i < 60; ++i) window.add(work, false);
  DiagnosisInput input;
  input.baseline = baseline;
  return {diagnose(window, input), {}, {}, std::nullopt, {}};
}

// The worked example B: 16 samples a rank, of 46 ms are 12 fixed and 9 the network's.
Given kept_batch() {
  Given g = given(46, {16, 16, 16, 16}, {36, 36, 36, 36}, 1);
  g.job.global_batch = 64;
  g.job.batch_rule = BatchRule::kGlobalKept;
  g.job.max_global_batch = 256;
  g.job.rate_rule = "Linear";
  return g;
}

TEST(Remedies, a_larger_batch_pays_the_fixed_cost_and_the_network_once) {
  const auto batch = kept_batch().price(RemedyKind::kLargerBatch);
  ASSERT_TRUE(batch);
  // 64 samples a rank cost what they cost the baseline, 96 ms, beside 4 x 1 ms of input and the network of 9 ms.
  EXPECT_NEAR(batch->remedy.predicted_gain, 4 * 46.0 / 109 - 1, 1e-9);
  EXPECT_EQ(batch->remedy.action, "batch x4: 64 -> 256 samples a step, learning rate by Linear");
  EXPECT_EQ(batch->remedy.state, RemedyState::kProposed);
  EXPECT_EQ(batch->amount, 256);
  EXPECT_FALSE(batch->remedy.predicted_loss_gain);
}

TEST(Remedies, the_users_limit_on_the_batch_is_kept) {
  Given g = kept_batch();
  g.job.max_global_batch = 130;
  EXPECT_EQ(g.price(RemedyKind::kLargerBatch)->amount, 128);
  g.job.max_global_batch = 0;
  EXPECT_EQ(g.price(RemedyKind::kLargerBatch)->remedy.state, RemedyState::kNotAllowed);
  g.job.max_global_batch.reset();
  EXPECT_FALSE(g.price(RemedyKind::kLargerBatch)) << "an unknown limit is no permission";
}

TEST(Remedies, a_batch_beyond_the_noise_scale_is_not_worth_it) {
  Given g = kept_batch();
  g.noise = NoiseScale{6400, 1};  // far above: nearly all of the speed counts
  auto batch = g.price(RemedyKind::kLargerBatch);
  EXPECT_NEAR(*batch->remedy.predicted_loss_gain, (4 * 46.0 / 109) * 1.01 / 1.04 - 1, 1e-9);
  EXPECT_EQ(batch->amount, 256);
  g.noise = NoiseScale{32, 1};  // twice the batch already: more samples teach nothing new
  batch = g.price(RemedyKind::kLargerBatch);
  EXPECT_EQ(batch->amount, 128);
  EXPECT_LT(*batch->remedy.predicted_loss_gain, 0);
}

TEST(Remedies, what_is_gained_in_the_end_comes_first) {
  Given g = kept_batch();
  g.job.wire_is_32_bit = true;
  g.job.gradient_bytes = 6e6;
  g.job.bus_bytes_per_second = 1e9;
  g.noise = NoiseScale{200, 1};
  const auto prices = g.prices();
  ASSERT_GE(prices.size(), 2u);
  for (std::size_t i = 1; i < prices.size(); ++i)
    EXPECT_GE(gain_in_the_end(prices[i - 1].remedy), gain_in_the_end(prices[i].remedy));
  // Less speed than was promised: so much less is gained in the end, too.
  Remedy remedy{"batch 64 -> 128", 0.6, 0.2, RemedyState::kApplied, 0.4};
  EXPECT_NEAR(gain_in_the_end(remedy), 1.2 * 1.4 / 1.6 - 1, 1e-9);
  remedy.measured_gain.reset();
  EXPECT_NEAR(gain_in_the_end(remedy), 0.4, 1e-9);
}

TEST(Remedies, without_a_baseline_or_a_fit_what_needs_one_has_no_price) {
  Given g = given(46, {16, 16, 16, 16}, {36, 36, 36, 36}, 1, std::nullopt);
  g.job = kept_batch().job;
  EXPECT_FALSE(g.price(RemedyKind::kLargerBatch));
  EXPECT_FALSE(g.price(RemedyKind::kFewerRanks));
}

TEST(Remedies, input_is_helped_by_threads_and_by_a_cache) {
  Given g = given(150, {64, 64}, {90, 90}, 50);
  EXPECT_FALSE(g.price(RemedyKind::kDataThreads)) << "it is not known how many there are";
  g.job.data_threads = 1;
  // Reading takes all of 150 ms; in 75 it hides behind the other 100.
  auto threads = g.price(RemedyKind::kDataThreads);
  EXPECT_NEAR(threads->remedy.predicted_gain, 0.5, 1e-9);
  EXPECT_EQ(threads->amount, 2);
  g.ranks = {RankFacts{2.0, 2, std::nullopt, ""}};
  EXPECT_EQ(g.price(RemedyKind::kDataThreads)->remedy.state, RemedyState::kNotAllowed);
  g.job.decoded_bytes_per_rank = 1e9;
  g.job.free_memory_bytes = 5e8;
  EXPECT_FALSE(g.price(RemedyKind::kCache));
  g.job.free_memory_bytes = 2e9;
  EXPECT_NEAR(g.price(RemedyKind::kCache)->remedy.predicted_gain, 0.5, 1e-9);
  Given heavy = given(250, {64, 64}, {40, 40}, 200);
  heavy.job.data_threads = 2;
  EXPECT_NEAR(heavy.price(RemedyKind::kDataThreads)->remedy.predicted_gain, 1.0, 1e-9);
}

TEST(Remedies, shares_by_speed_are_priced_and_may_be_forbidden) {
  Given g = given(160, {64, 64, 64, 64}, {96, 96, 96, 144}, 2);
  auto shares = g.price(RemedyKind::kShares);
  ASSERT_TRUE(shares);
  // 70 samples of 98 / 64 ms, against 146.
  EXPECT_NEAR(shares->remedy.predicted_gain, 160 / (14 + 70 * 98.0 / 64) - 1, 0.01);
  g.job.balance_allowed = false;
  EXPECT_EQ(g.price(RemedyKind::kShares)->remedy.state, RemedyState::kNotAllowed);
}

TEST(Remedies, the_network_is_helped_by_a_short_wire_or_another_bucket) {
  Given g = given(200, {64, 64}, {98, 98}, 2);
  EXPECT_FALSE(g.price(RemedyKind::kShortWire));
  g.job.wire_is_32_bit = true;
  EXPECT_FALSE(g.price(RemedyKind::kShortWire)) << "how much of it is bytes is not known";
  g.job.gradient_bytes = 60e6;
  g.job.bus_bytes_per_second = 1e9;
  // The bytes travel for 60 of the network's 100 ms: half of that is saved, and the latency of the hops stays.
  EXPECT_NEAR(g.price(RemedyKind::kShortWire)->remedy.predicted_gain, 200.0 / 170 - 1, 1e-9);
  g.job.gradient_bytes = 200e6;
  EXPECT_NEAR(g.price(RemedyKind::kShortWire)->remedy.predicted_gain, 200.0 / 150 - 1, 1e-9) << "some is hidden";
  g.job.best_bus_bytes_per_second = 2e9;
  EXPECT_NEAR(g.price(RemedyKind::kBucket)->remedy.predicted_gain, 200.0 / 150 - 1, 1e-9);
}

TEST(Remedies, fewer_ranks_are_better_where_the_network_eats_the_gain) {
  Given g = given(120, {16, 16, 16, 16}, {24, 24, 24, 24}, 0);
  g.job.batch_rule = BatchRule::kGlobalKept;
  const auto fewer = g.price(RemedyKind::kFewerRanks);
  ASSERT_TRUE(fewer);
  EXPECT_EQ(fewer->amount, 1);
  EXPECT_NEAR(fewer->remedy.predicted_gain, 120.0 / 96 - 1, 1e-9);
  g.job.batch_rule = BatchRule::kPerRankKept;
  EXPECT_FALSE(g.price(RemedyKind::kFewerRanks));
}

TEST(Remedies, a_healthy_job_needs_none_and_the_best_comes_first) {
  EXPECT_TRUE(given(101, {64, 64}, {96, 96}, 2).prices().empty());
  Given g = kept_batch();
  g.job.wire_is_32_bit = true;
  g.job.gradient_bytes = 6e6;
  g.job.bus_bytes_per_second = 1e9;
  const auto prices = g.prices();
  ASSERT_GE(prices.size(), 2u);
  for (std::size_t i = 1; i < prices.size(); ++i)
    EXPECT_GE(prices[i - 1].remedy.predicted_gain, prices[i].remedy.predicted_gain);
}

TEST(Remedies, what_was_done_stands_with_what_could_be) {
  const std::vector<Remedy> done{
      {"shares by speed, for rank 3", 0.4, 0.1, RemedyState::kReverted, std::nullopt}};
  Given g = given(160, {64, 64, 64, 64}, {96, 96, 96, 144}, 2);
  g.job.wire_is_32_bit = true;
  g.job.gradient_bytes = 20e6;
  g.job.bus_bytes_per_second = 1e9;
  const auto all = all_remedies(g.prices(), done);
  int shares = 0;
  for (const Remedy& one : all) shares += one.action.rfind("shares by speed", 0) == 0;
  EXPECT_EQ(shares, 1) << "the balancer has spoken";
  EXPECT_EQ(all.front().state, RemedyState::kReverted) << "0.10 measured, before 0.05 of the wire";
}

}  // namespace
}  // namespace evenkeel::trainer
