#include "contract/worst_exit.h"

#include <gtest/gtest.h>

#include <vector>

namespace evenkeel::contract {
namespace {

int worst(const std::vector<int>& codes) {
  return codes[worst_exit(codes)];
}

TEST(WorstExit, every_code_is_worse_than_all_behind_it) {
  const std::vector<int> from_the_worst{64, 78, 69, 65, 76, 70, 137, 74, 75, 143, 0};
  for (std::size_t a = 0; a < from_the_worst.size(); ++a) {
    for (std::size_t b = a; b < from_the_worst.size(); ++b) {
      EXPECT_EQ(worst({from_the_worst[a], from_the_worst[b]}), from_the_worst[a]);
      EXPECT_EQ(worst({from_the_worst[b], from_the_worst[a]}), from_the_worst[a]);
    }
  }
}

TEST(WorstExit, the_echo_of_a_failure_does_not_hide_it) {
  EXPECT_EQ(worst({75, 75, 65, 75}), 65);
  EXPECT_EQ(worst({143, 137, 143}), 137);
}

TEST(WorstExit, a_code_that_nobody_knows_is_a_defect_and_never_success) {
  EXPECT_EQ(worst({0, 1}), 1);
  EXPECT_EQ(worst({139, 3}), 3);
  EXPECT_EQ(worst({3, 65}), 65);
}

TEST(WorstExit, of_equal_ones_the_first_is_named) {
  EXPECT_EQ(worst_exit(std::vector<int>{0, 139, 137, 139}), 1u);
  EXPECT_EQ(worst_exit(std::vector<int>{0, 0}), 0u);
  EXPECT_EQ(worst_exit(std::vector<int>{143}), 0u);
}

}  // namespace
}  // namespace evenkeel::contract
