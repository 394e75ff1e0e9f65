#include "trainer/strategy/fixed_point.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace evenkeel::trainer {
namespace {

TEST(FixedPointSums, the_order_of_additions_changes_nothing) {
  const std::vector<float> parts{1e-3f, -7.25f, 3e4f, 1.1e-7f, -2.9e4f, 0.333f};
  FixedPointSums forward, backward;
  forward.clear(1);
  backward.clear(1);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    forward.add(std::span(&parts[i], 1));
    backward.add(std::span(&parts[parts.size() - 1 - i], 1));
  }
  EXPECT_EQ(forward.values()[0], backward.values()[0]);
  float sum = 0;
  forward.to_floats(std::span(&sum, 1));
  EXPECT_NEAR(sum, 993.084f, 1e-3);
  EXPECT_FALSE(forward.overflowed(4));
}

TEST(FixedPointSums, what_has_no_right_sum_is_remembered) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 1e8f}) {
    FixedPointSums sums;
    sums.clear(1);
    sums.add(std::span(&bad, 1));
    EXPECT_TRUE(sums.overflowed(1)) << bad;
  }
  FixedPointSums sums;
  sums.clear(1);
  const float large = 2e6f;
  sums.add(std::span(&large, 1));
  EXPECT_FALSE(sums.overflowed(1));
  EXPECT_TRUE(sums.overflowed(4)) << "four ranks with as much would wrap";
  sums.clear(1);
  EXPECT_FALSE(sums.overflowed(4));
}

}  // namespace
}  // namespace evenkeel::trainer
