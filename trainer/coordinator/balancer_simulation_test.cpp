// The balancer's bars, simulated: how near to the best shares, how soon, and how often for nothing. Seeds and
// noise are fixed; the thresholds in balancer.h move only together with these figures.
#include <gtest/gtest.h>

#include <cstdio>

#include "trainer/coordinator/balancer_fixture.h"

namespace evenkeel::trainer {
namespace {

double of_optimum(std::size_t ranks, std::int64_t each, std::int64_t granule, bool equal) {
  SimulatedJob::Options options;
  options.ranks = ranks;
  options.batch_per_rank = each;
  options.config.limits.granule = granule;
  if (equal) options.config.mode = BalanceMode::kOff;
  SimulatedJob job(options);
  job.factor.back() = 2;
  for (int i = 0; i < 80; ++i) job.step();
  return job.of_optimum();
}

TEST(BalancerSimulation, throughput_over_the_optimum_with_one_rank_at_half_speed) {
  struct Row {
    std::size_t ranks;
    double equal, of_8, of_32, of_64, of_128, granule_4;
  };
  const Row rows[] = {{2, 0.667, 0.970, 0.992, 0.992, 0.998, 0.970},
                      {4, 0.571, 0.914, 0.988, 0.988, 0.995, 0.914},
                      {8, 0.533, 0.948, 0.975, 0.989, 0.997, 0.948},
                      {16, 0.516, 0.918, 0.972, 0.986, 0.993, 0.918}};
  for (const Row& row : rows) {
    EXPECT_NEAR(of_optimum(row.ranks, 32, 1, true), row.equal, 6e-4) << row.ranks;
    EXPECT_NEAR(of_optimum(row.ranks, 8, 1, false), row.of_8, 6e-4) << row.ranks;
    EXPECT_NEAR(of_optimum(row.ranks, 32, 1, false), row.of_32, 6e-4) << row.ranks;
    EXPECT_NEAR(of_optimum(row.ranks, 64, 1, false), row.of_64, 6e-4) << row.ranks;
    EXPECT_NEAR(of_optimum(row.ranks, 128, 1, false), row.of_128, 6e-4) << row.ranks;
    EXPECT_NEAR(of_optimum(row.ranks, 32, 4, false), row.granule_4, 6e-4) << row.ranks;
  }
}

// Steps from the moment a rank becomes half as fast until a step has shares within a tenth of the best.
std::int64_t steps_to_fix(std::size_t ranks, double noise, std::uint32_t seed) {
  SimulatedJob::Options options;
  options.ranks = ranks;
  options.noise = noise;
  options.seed = seed;
  SimulatedJob job(options);
  for (int i = 0; i < 100; ++i) job.step();
  job.factor.back() = 2;
  const std::int64_t onset = job.steps;
  while (job.steps < onset + 400) {
    job.step();
    if (job.of_optimum() >= 0.9) return job.steps - onset;
  }
  return 400;
}

TEST(BalancerSimulation, a_rank_at_half_speed_is_relieved_in_a_dozen_steps) {
  for (const std::size_t ranks : {std::size_t{4}, std::size_t{8}}) {
    for (const double noise : {0.0, 0.05, 0.1, 0.2}) {
      std::vector<std::int64_t> took;
      for (std::uint32_t seed = 1; seed <= 40; ++seed) took.push_back(steps_to_fix(ranks, noise, seed));
      std::sort(took.begin(), took.end());
      std::printf("%zu ranks, noise %.2f: median %lld, worst %lld steps\n", ranks, noise,
                  static_cast<long long>(took[20]), static_cast<long long>(took.back()));
      EXPECT_LE(took[20], noise <= 0.1 ? 12 : 25) << ranks << " ranks, noise " << noise;
      if (noise <= 0.1) {
        EXPECT_LE(took.back(), 25) << ranks << " ranks, noise " << noise;
      }
    }
  }
}

TEST(BalancerSimulation, healthy_ranks_are_left_alone) {
  for (const std::size_t ranks : {std::size_t{2}, std::size_t{4}, std::size_t{8}, std::size_t{16}}) {
    for (const double noise : {0.05, 0.1, 0.2}) {
      int changes = 0;
      for (std::uint32_t seed = 1; seed <= 10; ++seed) {
        SimulatedJob::Options options;
        options.ranks = ranks;
        options.noise = noise;
        options.seed = seed;
        SimulatedJob job(options);
        for (int i = 0; i < 1000; ++i) job.step();
        if (noise <= 0.1) {
          EXPECT_LE(job.changes, 2) << ranks << " ranks, noise " << noise << ", seed " << seed;
        }
        changes += job.changes;
      }
      std::printf("%zu ranks, noise %.2f: %.2f changes in 1000 steps\n", ranks, noise, changes / 10.0);
      if (noise <= 0.1) {
        EXPECT_LE(changes, 10) << ranks << " ranks, noise " << noise;
      }
    }
  }
}

// One rank far too slow for the least that every rank must have: the others go on without it, and the gain is what
// was predicted; ranks that differ by noise alone are never left out.
TEST(BalancerSimulation, a_hopeless_rank_is_left_out_and_a_healthy_one_never) {
  for (const double noise : {0.0, 0.05, 0.1, 0.2}) {
    double error = 0;
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      SimulatedJob::Options options;
      options.noise = noise;
      options.seed = seed;
      options.config.limits.floor = 16;
      options.config.min_ranks = 1;
      SimulatedJob healthy(options);
      for (int i = 0; i < 500; ++i) healthy.step();
      EXPECT_EQ(std::count(healthy.rests.begin(), healthy.rests.end(), true), 0) << noise << ", seed " << seed;
      SimulatedJob job(options);
      job.factor[3] = 8;
      for (int i = 0; i < 200; ++i) job.step();
      EXPECT_TRUE(job.rests[3]) << noise << ", seed " << seed;
      EXPECT_EQ(std::count(job.rests.begin(), job.rests.end(), true), 1) << noise << ", seed " << seed;
      for (const contract::Remedy& remedy : job.balancer->state().remedies) {
        if (!remedy.action.starts_with("go on without") || !remedy.measured_gain) continue;
        // Of the step's time before.
        const double off = 1 / (1 + remedy.predicted_gain) - 1 / (1 + *remedy.measured_gain);
        error = std::max(error, std::abs(off));
      }
    }
    std::printf("noise %.2f: predicted and measured gain differ by %.3f of a step at worst\n", noise, error);
    EXPECT_LE(error, 0.1) << "noise " << noise;
  }
}

TEST(BalancerSimulation, what_is_reached_stays_within_the_bar) {
  for (const double noise : {0.0, 0.05, 0.1, 0.2}) {
    double mean = 0, worst = 1;
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      SimulatedJob::Options options;
      options.ranks = 8;
      options.noise = noise;
      options.seed = seed;
      SimulatedJob job(options);
      job.factor[2] = 2;
      double reached = 0;
      for (int i = 0; i < 300; ++i) {
        job.step();
        if (job.steps > 60) reached += job.of_optimum() / 240;
      }
      mean += reached / 20;
      worst = std::min(worst, reached);
      EXPECT_LE(job.changes, 4) << "noise " << noise << ", seed " << seed;
    }
    std::printf("noise %.2f: %.3f of the optimum, at worst %.3f\n", noise, mean, worst);
    EXPECT_GE(mean, 0.93) << "noise " << noise;
    EXPECT_GE(worst, noise <= 0.1 ? 0.9 : 0.75) << "noise " << noise;
  }
}

}  // namespace
}  // namespace evenkeel::trainer
