#include "trainer/data/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace evenkeel::trainer {
namespace {

std::vector<std::uint64_t> ids(std::uint64_t samples, std::uint64_t seed, std::uint64_t epoch) {
  const EpochOrder order(samples, Shuffle::kOn, seed, epoch);
  std::vector<std::uint64_t> result;
  for (std::uint64_t p = 0; p < samples; ++p) result.push_back(order.id_at(p));
  return result;
}

TEST(EpochOrder, every_id_comes_exactly_once_for_awkward_sizes) {
  std::vector<std::uint64_t> sizes = {1, 2, 3, 10007, 60000};
  for (int k = 2; k <= 17; ++k) {
    for (const int delta : {-1, 0, 1})
      sizes.push_back((std::uint64_t{1} << k) + static_cast<std::uint64_t>(delta));
  }
  for (const std::uint64_t size : sizes) {
    std::vector<int> seen(size, 0);
    for (const std::uint64_t id : ids(size, 42, 3)) {
      ASSERT_LT(id, size);
      ++seen[id];
    }
    for (const int count : seen) ASSERT_EQ(count, 1) << "of " << size;
  }
}

TEST(EpochOrder, repeats_for_equal_seed_and_epoch_and_differs_otherwise) {
  EXPECT_EQ(ids(1000, 42, 0), ids(1000, 42, 0));
  EXPECT_NE(ids(1000, 42, 0), ids(1000, 42, 1));
  EXPECT_NE(ids(1000, 42, 0), ids(1000, 43, 0));
  EXPECT_NE(ids(1000, 1, 2), ids(1000, 2, 1));
}

TEST(EpochOrder, is_file_order_without_shuffle) {
  const EpochOrder order(100, Shuffle::kOff, 42, 7);
  for (std::uint64_t p = 0; p < 100; ++p) EXPECT_EQ(order.id_at(p), p);
}

TEST(EpochOrder, handles_a_data_set_beyond_memory) {
  const EpochOrder order((std::uint64_t{1} << 62) + 1, Shuffle::kOn, 1, 1);
  for (std::uint64_t p = 0; p < 1000; ++p) EXPECT_LE(order.id_at(p), std::uint64_t{1} << 62);
}

// A shuffle that keeps neighbours together would pass the bijection test; this one counts fixed steps of +1.
TEST(EpochOrder, neighbours_do_not_stay_neighbours) {
  const auto order = ids(10000, 42, 0);
  int neighbours = 0;
  int first_half_in_first_half = 0;
  for (std::size_t p = 1; p < order.size(); ++p) neighbours += order[p] == order[p - 1] + 1;
  for (std::size_t p = 0; p < order.size() / 2; ++p) first_half_in_first_half += order[p] < order.size() / 2;
  EXPECT_LT(neighbours, 10);                            // 1 expected
  EXPECT_NEAR(first_half_in_first_half, 2500, 5 * 25);  // sigma is 25
}

TEST(EpochOrder, the_first_place_is_fair_over_epochs) {
  std::vector<int> hits(10, 0);
  for (std::uint64_t epoch = 0; epoch < 10000; ++epoch)
    ++hits[EpochOrder(10, Shuffle::kOn, 42, epoch).id_at(0)];
  for (const int count : hits) EXPECT_NEAR(count, 1000, 5 * 30);
}

TEST(EpochOrder, by_files_keeps_each_file_together_and_has_every_id_once) {
  const std::vector<std::int64_t> files{3, 0, 1, 100, 7, 0, 64};
  std::vector<std::vector<std::uint64_t>> epochs;
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    const EpochOrder order = EpochOrder::of_files(files, Shuffle::kOn, 42, epoch);
    const contract::FileLayout layout = contract::file_layout(files, true, 42, epoch);
    ASSERT_EQ(order.samples(), 175u);
    std::vector<std::uint64_t> ids, sorted;
    for (std::uint64_t p = 0; p < 175; ++p) ids.push_back(order.id_at(p));
    for (std::size_t place = 0; place < layout.files.size(); ++place) {
      std::uint64_t first = 0;
      for (std::size_t f = 0; f < layout.files[place]; ++f) first += static_cast<std::uint64_t>(files[f]);
      for (std::int64_t p = layout.starts[place]; p < layout.starts[place + 1]; ++p) {
        const std::uint64_t id = ids[static_cast<std::size_t>(p)];
        EXPECT_TRUE(id >= first && id < first + static_cast<std::uint64_t>(files[layout.files[place]])) << p;
      }
    }
    sorted = ids;
    std::sort(sorted.begin(), sorted.end());
    for (std::uint64_t id = 0; id < 175; ++id) ASSERT_EQ(sorted[id], id);
    epochs.push_back(std::move(ids));
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  const EpochOrder plain = EpochOrder::of_files(files, Shuffle::kOff, 42, 3);
  for (std::uint64_t p = 0; p < 175; ++p) EXPECT_EQ(plain.id_at(p), p);
}

TEST(EpochOrder, passes_are_the_whole_again_and_again_each_in_another_order) {
  const EpochOrder order = EpochOrder::of_passes(50, Shuffle::kOn, 42, 1);
  std::vector<std::vector<std::uint64_t>> passes(3);
  for (std::uint64_t p = 0; p < 150; ++p) passes[p / 50].push_back(order.id_at(p));
  EXPECT_EQ(passes[0], ids(50, 42, 1));
  EXPECT_NE(passes[1], passes[0]);
  EXPECT_NE(passes[2], passes[1]);
  for (auto& pass : passes) {
    std::sort(pass.begin(), pass.end());
    for (std::uint64_t id = 0; id < 50; ++id) ASSERT_EQ(pass[id], id);
  }
}

}  // namespace
}  // namespace evenkeel::trainer
