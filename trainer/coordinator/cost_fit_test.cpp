#include "trainer/coordinator/cost_fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "trainer/coordinator/balancer_fixture.h"

namespace evenkeel::trainer {
namespace {

// 12 ms and 1.5 ms a sample; rank 1 is twice as slow.
StepWork step_of(double n, Normal& random, double noise) {
  StepWork step;
  for (int r = 0; r < 3; ++r) {
    RankWork rank;
    rank.samples = n;
    rank.compute_seconds = (0.012 + 0.0015 * n) * (r == 1 ? 2 : 1) * random(noise);
    step.ranks.push_back(rank);
  }
  step.ranks.push_back(away());
  step.step_seconds = 1;
  return step;
}

CostFit fit_over(const std::vector<double>& sizes, double noise, int steps = 60) {
  CostFit fit;
  Normal random(3);
  for (int i = 0; i < steps; ++i)
    fit.add(step_of(sizes[static_cast<std::size_t>(i) % sizes.size()], random, noise));
  return fit;
}

TEST(CostFit, finds_the_fixed_cost_and_the_slope_of_the_median_rank) {
  const auto cost = fit_over({64, 64, 64, 24}, 0).fit();
  ASSERT_TRUE(cost);
  EXPECT_NEAR(cost->fixed_seconds, 0.012, 1e-9);
  EXPECT_NEAR(cost->seconds_per_sample, 0.0015, 1e-9);
  const auto noisy = fit_over({64, 64, 64, 24}, 0.05, 400).fit();
  ASSERT_TRUE(noisy);
  EXPECT_NEAR(noisy->seconds_per_sample, 0.0015, 0.0001);
}

TEST(CostFit, says_nothing_where_it_does_not_know) {
  EXPECT_FALSE(fit_over({64}, 0).fit()) << "one size";
  EXPECT_FALSE(fit_over({64, 63}, 0).fit()) << "sizes too near";
  EXPECT_FALSE(fit_over({64, 24}, 0, 12).fit()) << "too few steps";
  EXPECT_FALSE(fit_over({64, 48}, 0.6).fit()) << "too much noise";
  CostFit fit = fit_over({64, 24}, 0);
  fit.reset_rank(0);
  EXPECT_TRUE(fit.fit()) << "two of three";
  fit.reset_rank(2);
  EXPECT_FALSE(fit.fit()) << "one of three";
}

TEST(CostFit, is_a_baseline_that_says_where_it_comes_from) {
  const auto baseline = fit_over({64, 24}, 0).baseline(64);
  ASSERT_TRUE(baseline);
  EXPECT_EQ(baseline->source, BaselineSource::kFitted);
  EXPECT_NEAR(baseline->compute_seconds, 0.096, 1e-9);
  Normal random(1);
  const Waterfall w = make_waterfall(std::vector{step_of(64, random, 0)}, baseline);
  EXPECT_NEAR(*w.fixed, 0.012, 1e-9);
  EXPECT_NEAR(w.speedup->sum(), 3, 1e-9);
}

TEST(NoiseScale, of_unequal_batches) {
  const auto scale = noise_scale(std::vector<double>{4, 8, 16, 36}, 21.30815972, 6.7578125);
  ASSERT_TRUE(scale);
  EXPECT_NEAR(scale->trace, 144.5, 1e-5);
  EXPECT_NEAR(scale->gradient_squared, 4.5, 1e-6);
  EXPECT_FALSE(noise_scale(std::vector<double>{4, 0}, 21, 6)) << "one rank has no noise to compare";
  EXPECT_FALSE(noise_scale(std::vector<double>{4, 4}, 1e9, 1)) << "nothing but noise";
}

// Gradients of single samples: 0.5 in each of 16 directions, and normal noise of variance 9 in each. tr = 144, G2 = 4.
TEST(NoiseScale, of_many_noisy_steps_is_that_of_the_samples) {
  constexpr int kDirections = 16;
  const std::vector<double> samples{4, 8, 0, 16};
  Normal random(7);
  NoiseMeter meter;
  const auto step = [&] {
    std::vector<double> squares, all(kDirections, 0);
    for (const double n : samples) {
      double square = 0;
      for (int d = 0; d < kDirections && n > 0; ++d) {
        const double mean = 0.5 + 3 / std::sqrt(n) * (random(0.2) - 1) / 0.2;
        square += mean * mean;
        all[static_cast<std::size_t>(d)] += n / 28 * mean;
      }
      squares.push_back(square);
    }
    double reduced = 0;
    for (const double mean : all) reduced += mean * mean;
    meter.add(samples, squares, reduced);
  };
  for (int i = 0; i < 4; ++i) step();
  EXPECT_FALSE(meter.scale()) << "too few to say";
  double trace = 0, square = 0;
  constexpr int kRounds = 400;
  for (int i = 0; i < kRounds; ++i) {
    for (int k = 0; k < 20; ++k) step();
    const auto scale = meter.scale();
    if (!scale) continue;
    trace += scale->trace / kRounds;
    square += scale->gradient_squared / kRounds;
  }
  EXPECT_NEAR(trace, 144, 6);
  EXPECT_NEAR(square, 4, 0.5);
}

TEST(NoiseScale, of_samples_that_are_all_alike_is_not_known) {
  NoiseMeter meter;
  for (int i = 0; i < 20; ++i) meter.add(std::vector<double>{8, 8}, std::vector<double>{1 + 1e-7, 1}, 1);
  EXPECT_FALSE(meter.scale()) << "rounding is no noise";
}

}  // namespace
}  // namespace evenkeel::trainer
