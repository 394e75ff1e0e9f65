#include "trainer/coordinator/imbalance.h"

#include <gtest/gtest.h>

namespace evenkeel::trainer {
namespace {

using Times = std::vector<double>;

TEST(Imbalance, ratios_of_the_worked_examples) {
  EXPECT_NEAR(imbalance_ratio(Times{100, 100, 100, 130}), 0.2093, 5e-5);
  EXPECT_NEAR(idle_ratio(Times{100, 100, 100, 130}), 0.1731, 5e-5);
  EXPECT_NEAR(imbalance_ratio(Times{100, 100, 100, 180}), 0.5, 1e-12);
  EXPECT_NEAR(idle_ratio(Times{100, 100, 100, 180}), 0.3333, 5e-5);
  const Times one_of_eight{1, 1, 1, 1, 1, 1, 1, 2};
  EXPECT_NEAR(imbalance_ratio(one_of_eight), 0.78, 5e-3);
  EXPECT_NEAR(idle_ratio(one_of_eight), 0.44, 5e-3);
  EXPECT_NEAR(coefficient_of_variation(one_of_eight), 0.29, 5e-3);
  EXPECT_NEAR(gini(one_of_eight), 0.097, 5e-4);
}

TEST(Imbalance, no_ranks_and_no_work_are_no_imbalance) {
  EXPECT_EQ(imbalance_ratio(Times{}), 0);
  EXPECT_EQ(imbalance_ratio(Times{0, 0}), 0);
  EXPECT_EQ(idle_ratio(Times{0, 0}), 0);
}

TEST(Imbalance, quantiles_are_linear_and_the_median_is_the_lower) {
  EXPECT_DOUBLE_EQ(quantile(Times{2, 1}, 0.25), 1.25);
  EXPECT_DOUBLE_EQ(quantile(Times{4, 3, 2, 1, 5}, 0.5), 3);
  EXPECT_DOUBLE_EQ(quantile(Times{7}, 0.25), 7);
  EXPECT_DOUBLE_EQ(lower_median(Times{4, 1, 3, 2}), 2);
}

TEST(Imbalance, relative_performance_uses_speed_so_shares_do_not_matter) {
  auto relative = relative_performance(Times{64, 64, 64, 64}, Times{100, 100, 100, 180});
  EXPECT_NEAR(*relative[0], 1, 1e-12);
  EXPECT_NEAR(*relative[3], 0.556, 5e-4);
  relative = relative_performance(Times{72, 72, 72, 40}, Times{72, 72, 72, 72});
  EXPECT_NEAR(*relative[3], 0.556, 5e-4);
}

TEST(Imbalance, one_fast_rank_does_not_make_the_others_slow) {
  const auto relative = relative_performance(Times{1, 1, 1, 1, 1}, Times{50, 100, 100, 100, 100});
  for (std::size_t r = 1; r < 5; ++r) EXPECT_NEAR(*relative[r], 1, 1e-12);
}

TEST(Imbalance, the_slow_one_of_two_is_found) {
  const auto relative = relative_performance(Times{1, 1}, Times{100, 160});
  EXPECT_LT(*relative[1], 0.75);
  EXPECT_GT(*relative[0], 1);
}

TEST(Imbalance, a_rank_without_samples_has_no_speed) {
  const auto relative = relative_performance(Times{1, 0}, Times{100, 1});
  EXPECT_TRUE(relative[0]);
  EXPECT_FALSE(relative[1]);
}

TEST(Imbalance, what_if_tells_the_same_rank_from_a_rotating_one) {
  StepTimes same(8, Times(8, 100)), rotating(8, Times(8, 100));
  for (std::size_t s = 0; s < 8; ++s) same[s][5] = rotating[s][s] = 130;
  const WhatIf a = what_if(same);
  EXPECT_NEAR(a.slowdown, 1.25301, 5e-6);
  EXPECT_NEAR(a.worst_share, 1.0, 1e-9);
  EXPECT_NEAR(a.rank_slowdown[5], 1.253, 5e-4);
  EXPECT_DOUBLE_EQ(a.last_share[5], 1);
  const WhatIf b = what_if(rotating);
  EXPECT_NEAR(b.slowdown, 1.25301, 5e-6);
  EXPECT_NEAR(b.worst_share, 0.125, 1e-9);
  for (const double each : b.rank_slowdown) EXPECT_NEAR(each, 1.0316, 5e-5);
  EXPECT_DOUBLE_EQ(b.last_share[5], 0.125);
}

TEST(Imbalance, equal_ranks_have_nothing_to_repair) {
  const WhatIf equal = what_if(StepTimes(4, Times(4, 10)));
  EXPECT_DOUBLE_EQ(equal.slowdown, 1);
  EXPECT_EQ(equal.worst_share, 0);
}

}  // namespace
}  // namespace evenkeel::trainer
