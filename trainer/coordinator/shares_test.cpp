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

using Costs = std::vector<std::optional<double>>;

double slowest(const Shares& shares, const Costs& costs) {
  double longest = 0;
  for (std::size_t r = 0; r < shares.size(); ++r)
    longest = std::max(longest, static_cast<double>(shares[r]) * costs[r].value_or(0));
  return longest;
}

TEST(MinMaxShares, worked_examples) {
  const Costs slow{1, 1, 1, 1.8};
  EXPECT_EQ(min_max_shares(256, slow).shares, (Shares{72, 72, 72, 40}));
  const MinMaxShares capped = min_max_shares(256, slow, {1, 0, {68, 68, 68, 68}});
  EXPECT_EQ(capped.shares, (Shares{68, 68, 68, 52}));
  EXPECT_NEAR(slowest(capped.shares, slow), 93.6, 1e-9);
  EXPECT_FALSE(capped.caps_exceeded);
  EXPECT_EQ(min_max_shares(128, {1, 1, 1, 2}).shares, (Shares{37, 37, 36, 18}));
}

TEST(MinMaxShares, groups_stay_whole_and_only_the_last_is_short) {
  // 64 a rank in groups of 16, one of 4 at 2x: 0.8 of the best share.
  EXPECT_EQ(min_max_shares(256, {1, 1, 1, 2}, {16, 0, {}}).shares, (Shares{80, 80, 64, 32}));
  EXPECT_EQ(min_max_shares(250, {1, 1, 1, 2}, {16, 0, {}}).shares, (Shares{80, 80, 64, 26}));
  EXPECT_EQ(min_max_shares(10, {1, 1}, {16, 0, {}}).shares, (Shares{10, 0}));
  // A cap holds whole groups only.
  EXPECT_EQ(min_max_shares(64, {1, 1}, {16, 0, {47, std::nullopt}}).shares, (Shares{32, 32}));
  EXPECT_EQ(min_max_shares(64, {1, 9}, {16, 0, {47, std::nullopt}}).shares, (Shares{32, 32}));
}

TEST(MinMaxShares, corner_cases) {
  EXPECT_EQ(min_max_shares(0, {1, 2}).shares, (Shares{0, 0}));
  EXPECT_EQ(min_max_shares(7, {3.0}).shares, (Shares{7}));
  EXPECT_EQ(min_max_shares(9, {1, std::nullopt, 1}).shares, (Shares{5, 0, 4})) << "a rank is away";
  EXPECT_EQ(min_max_shares(9, {0, 0}).shares, (Shares{5, 4})) << "nothing was measured";
  EXPECT_EQ(min_max_shares(9, {0, 1}).shares, (Shares{5, 4})) << "a cost of 0 does not take everything";
}

TEST(MinMaxShares, caps_that_do_not_hold_the_step_are_exceeded_evenly) {
  const MinMaxShares over = min_max_shares(40, {1, 1, 5}, {1, 0, {10, 10, 10}});
  EXPECT_TRUE(over.caps_exceeded);
  EXPECT_EQ(over.shares, (Shares{14, 13, 13}));
  EXPECT_FALSE(min_max_shares(30, {1, 1, 5}, {1, 0, {10, 10, 10}}).caps_exceeded);
}

TEST(MinMaxShares, a_floor_is_kept_and_lowered_where_it_does_not_fit) {
  EXPECT_EQ(min_max_shares(128, {1, 1, 1, 9}, {1, 16, {}}).shares, (Shares{38, 37, 37, 16}));
  EXPECT_EQ(min_max_shares(8, {1, 1, 1, 9}, {1, 16, {}}).shares, (Shares{2, 2, 2, 2}));
}

// The definition, granule by granule, without any short cut.
Shares naive(std::int64_t samples, const Costs& costs) {
  Shares shares(costs.size(), 0);
  for (; samples > 0; --samples) {
    std::size_t best = 0;
    for (std::size_t r = 1; r < costs.size(); ++r) {
      if (static_cast<double>(shares[r] + 1) * *costs[r] <
          static_cast<double>(shares[best] + 1) * *costs[best])
        best = r;
    }
    ++shares[best];
  }
  return shares;
}

TEST(MinMaxShares, the_short_cut_changes_nothing) {
  std::uint64_t state = 1;
  const auto next = [&] { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 40; };
  for (int round = 0; round < 400; ++round) {
    Costs costs;
    const std::size_t ranks = 1 + next() % 9;
    for (std::size_t r = 0; r < ranks; ++r) costs.emplace_back(0.25 * static_cast<double>(1 + next() % 12));
    const auto samples = static_cast<std::int64_t>(next() % 200);
    const MinMaxShares found = min_max_shares(samples, costs);
    ASSERT_EQ(found.shares, naive(samples, costs)) << "round " << round;
  }
}

TEST(Shares, cuts_tile_the_range) {
  EXPECT_EQ(cuts_of(10, {2, 0, 3}), (Shares{10, 12, 12, 15}));
  EXPECT_EQ(cuts_of(7, {}), (Shares{7}));
}

}  // namespace
}  // namespace evenkeel::trainer
