#include "trainer/coordinator/shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace evenkeel::trainer {
namespace {

using Shares = std::vector<std::int64_t>;

// What TensorFlow does: the batch is rounded up to a multiple and the last ranks get what is left. Here for
// comparison only.
Shares ceil_shares(std::int64_t samples, int ranks) {
  const std::int64_t each = (samples + ranks - 1) / ranks;
  Shares shares;
  for (int r = 0; r < ranks; ++r) {
    shares.push_back(std::min(each, samples));
    samples -= shares.back();
  }
  return shares;
}

TEST(Shares, first_steps_against_the_ceil_split) {
  struct Row {
    std::int64_t samples;
    int ranks;
    Shares ceil, balanced;
  };
  const Row rows[] = {
      {10, 4, {3, 3, 3, 1}, {3, 3, 2, 2}}, {5, 4, {2, 2, 1, 0}, {2, 1, 1, 1}},
      {64, 3, {22, 22, 20}, {22, 21, 21}}, {7, 4, {2, 2, 2, 1}, {2, 2, 2, 1}},
      {3, 4, {1, 1, 1, 0}, {1, 1, 1, 0}},  {9, 2, {5, 4}, {5, 4}},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(ceil_shares(row.samples, row.ranks), row.ceil) << row.samples << " over " << row.ranks;
    EXPECT_EQ(balanced_shares(row.samples, row.ranks, 0), row.balanced)
        << row.samples << " over " << row.ranks;
  }
}

TEST(Shares, the_extra_samples_rotate_from_step_to_step) {
  EXPECT_EQ(balanced_shares(64, 3, 1), (Shares{21, 22, 21}));
  EXPECT_EQ(balanced_shares(64, 3, 2), (Shares{21, 21, 22}));
  EXPECT_EQ(balanced_shares(3, 4, 25), (Shares{1, 1, 0, 1}));
  EXPECT_EQ(balanced_shares(2, 3, 3), (Shares{1, 1, 0}));
}

TEST(Shares, over_as_many_steps_as_ranks_everyone_gets_the_same) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (std::int64_t samples = 0; samples <= 40; ++samples) {
      Shares total(static_cast<std::size_t>(ranks), 0);
      for (std::int64_t step = 0; step < ranks; ++step) {
        const Shares shares = balanced_shares(samples, ranks, step);
        EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), std::int64_t{0}), samples);
        const auto [low, high] = std::minmax_element(shares.begin(), shares.end());
        EXPECT_LE(*high - *low, 1);
        for (std::size_t r = 0; r < total.size(); ++r) total[r] += shares[r];
      }
      for (const std::int64_t sum : total) EXPECT_EQ(sum, samples) << samples << " over " << ranks;
    }
  }
}

TEST(Shares, a_step_number_near_the_largest_does_not_overflow) {
  const Shares shares = balanced_shares(4095, 4096, INT64_MAX);
  EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), std::int64_t{0}), 4095);
}

TEST(Shares, cuts_tile_the_range) {
  EXPECT_EQ(cuts_of(10, {2, 0, 3}), (Shares{10, 12, 12, 15}));
  EXPECT_EQ(cuts_of(7, {}), (Shares{7}));
}

}  // namespace
}  // namespace evenkeel::trainer
