#include "trainer/coordinator/waterfall.h"

#include <gtest/gtest.h>

namespace evenkeel::trainer {
namespace {

constexpr Baseline kBaseline{64, 0.096, 0.002, 0.100, BaselineSource::kMeasured};

StepWork step(double total_ms, std::vector<double> samples, std::vector<double> compute_ms, double input_ms) {
  StepWork work;
  work.step_seconds = total_ms / 1000;
  for (std::size_t r = 0; r < samples.size(); ++r) {
    RankWork rank;
    rank.samples = samples[r];
    rank.compute_seconds = compute_ms[r] / 1000;
    rank.input_seconds = input_ms / 1000;
    work.ranks.push_back(rank);
  }
  return work;
}

struct Row {
  const char* name;
  StepWork work;
  double useful, fixed, capacity, wait, input, rest;           // ms
  double reached, fixed_loss, input_loss, imbalance, network;  // of N
};

std::vector<Row> rows() {
  return {
      {"A", step(160, {64, 64, 64, 64}, {96, 96, 96, 144}, 2), 96, 0, 12, 36, 2, 14, 2.5, 0, 0, 1.2, 0.3},
      {"A re-balanced", step(121, {70, 70, 70, 46}, {105, 105, 105, 103.5}, 2), 96, 0, 8.625, 0.375, 2, 14,
       3.3058, 0, 0, 0.2975, 0.3967},
      {"B", step(46, {16, 16, 16, 16}, {36, 36, 36, 36}, 1), 24, 12, 0, 0, 1, 9, 2.1739, 1.0435, 0.0435, 0,
       0.7391},
  };
}

TEST(Waterfall, worked_examples) {
  for (const Row& row : rows()) {
    const Waterfall w = make_waterfall(std::vector{row.work}, kBaseline);
    EXPECT_NEAR(*w.useful * 1000, row.useful, 1e-6) << row.name;
    EXPECT_NEAR(*w.fixed * 1000, row.fixed, 1e-6) << row.name;
    EXPECT_NEAR(w.capacity * 1000, row.capacity, 1e-6) << row.name;
    EXPECT_NEAR(w.wait * 1000, row.wait, 1e-6) << row.name;
    EXPECT_NEAR(w.input * 1000, row.input, 1e-6) << row.name;
    EXPECT_NEAR(w.rest * 1000, row.rest, 1e-6) << row.name;
    EXPECT_NEAR(w.speedup->reached, row.reached, 5e-5) << row.name;
    EXPECT_NEAR(w.speedup->fixed, row.fixed_loss, 5e-5) << row.name;
    EXPECT_NEAR(w.speedup->input, row.input_loss, 5e-5) << row.name;
    EXPECT_NEAR(w.speedup->imbalance, row.imbalance, 5e-5) << row.name;
    EXPECT_NEAR(w.speedup->communication, row.network, 5e-5) << row.name;
    EXPECT_NEAR(w.speedup->sum(), 4, 1e-9) << row.name;
  }
}

TEST(Waterfall, the_terms_add_up_over_steps_of_different_kinds) {
  const std::vector<StepWork> steps{rows()[0].work, rows()[1].work, rows()[2].work};
  const Waterfall w = make_waterfall(steps, kBaseline);
  EXPECT_NEAR(*w.useful + *w.fixed + w.capacity + w.wait + w.input + w.rest, w.step_seconds, 1e-12);
  EXPECT_NEAR(w.speedup->sum(), 4, 1e-9);
  const contract::Losses losses = losses_of(w);
  EXPECT_NEAR(
      *losses.compute + *losses.fixed_cost + *losses.input_wait + *losses.imbalance + *losses.communication,
      1, 1e-12);
}

TEST(Waterfall, without_a_baseline_the_fixed_cost_is_absent_and_the_rest_stays) {
  const Waterfall w = make_waterfall(std::vector{rows()[0].work}, std::nullopt);
  EXPECT_FALSE(w.useful || w.fixed || w.speedup);
  EXPECT_NEAR(w.useful_and_fixed, 0.096, 1e-9);
  const contract::Losses losses = losses_of(w);
  EXPECT_FALSE(losses.fixed_cost);
  EXPECT_NEAR(*losses.imbalance, 48.0 / 160, 1e-9);
  EXPECT_NEAR(*losses.compute, 96.0 / 160, 1e-9);
}

TEST(Waterfall, a_delay_moves_its_own_term_alone) {
  const Waterfall before = make_waterfall(std::vector{rows()[0].work}, kBaseline);
  StepWork late = rows()[0].work;
  for (RankWork& rank : late.ranks) rank.input_seconds += 0.016;
  late.step_seconds += 0.016;
  const Waterfall input = make_waterfall(std::vector{late}, kBaseline);
  EXPECT_NEAR(input.input - before.input, 0.016, 1e-9);
  EXPECT_NEAR(input.wait, before.wait, 1e-9);
  EXPECT_NEAR(input.capacity, before.capacity, 1e-9);
  EXPECT_NEAR(input.rest, before.rest, 1e-9);

  StepWork network = rows()[0].work;
  network.step_seconds += 0.016;
  const Waterfall rest = make_waterfall(std::vector{network}, kBaseline);
  EXPECT_NEAR(rest.rest - before.rest, 0.016, 1e-9);
  EXPECT_NEAR(rest.wait, before.wait, 1e-9);
}

TEST(Waterfall, timers_that_run_fast_show_as_residue) {
  StepWork scaled = rows()[0].work;
  scaled.wall_seconds = scaled.step_seconds;
  scaled.step_seconds *= 1.1;
  for (RankWork& rank : scaled.ranks) {
    rank.compute_seconds *= 1.1;
    rank.input_seconds *= 1.1;
  }
  const Waterfall w = make_waterfall(std::vector{scaled}, kBaseline);
  EXPECT_NEAR(*w.residue, -0.016, 1e-9);
  EXPECT_NEAR(*w.useful + *w.fixed + w.capacity + w.wait + w.input + w.rest, w.step_seconds, 1e-12);
}

TEST(Waterfall, a_rank_that_is_away_counts_nowhere) {
  StepWork with = rows()[0].work;
  with.ranks.insert(with.ranks.begin() + 1, away());
  const Waterfall w = make_waterfall(std::vector{with}, kBaseline);
  EXPECT_NEAR(w.speedup->reached, 2.5, 1e-9);
  EXPECT_NEAR(w.speedup->sum(), 4, 1e-9);
  EXPECT_NEAR(w.wait * 1000, 36, 1e-9);
}

TEST(Waterfall, terms_are_signed) {
  // One rank twice as fast as the median: capacity is a gain.
  const Waterfall w = make_waterfall(std::vector{step(120, {64, 64, 64}, {48, 96, 96}, 0)}, kBaseline);
  EXPECT_NEAR(w.capacity * 1000, -16, 1e-9);
  EXPECT_NEAR(w.wait * 1000, 16, 1e-9);
}

}  // namespace
}  // namespace evenkeel::trainer
