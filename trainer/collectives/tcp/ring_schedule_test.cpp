#include "trainer/collectives/tcp/ring_schedule.h"

#include <gtest/gtest.h>

#include <set>

namespace evenkeel::trainer {
namespace {

std::uint64_t elements_of(const std::vector<RingFrame>& frames) {
  std::uint64_t sum = 0;
  for (const RingFrame& frame : frames) sum += frame.count;
  return sum;
}

TEST(RingSchedule, what_one_rank_sends_is_what_the_next_expects) {
  for (int size = 2; size <= 8; ++size) {
    for (const std::uint64_t elements : {0u, 1u, 3u, 7u, 8u, 1000u, 1003u}) {
      for (int rank = 0; rank < size; ++rank) {
        const auto out = all_reduce_schedule(rank, size, elements, 64).out;
        const auto in = all_reduce_schedule((rank + 1) % size, size, elements, 64).in;
        ASSERT_EQ(out.size(), in.size());
        for (std::size_t i = 0; i < out.size(); ++i) {
          EXPECT_EQ(out[i].step, in[i].step);
          EXPECT_EQ(out[i].offset, in[i].offset);
          EXPECT_EQ(out[i].count, in[i].count);
        }
      }
    }
  }
}

TEST(RingSchedule, a_rank_sends_two_times_n_minus_one_nths_of_the_message) {
  for (int size = 2; size <= 8; ++size) {
    const std::uint64_t elements = 840 * 16;  // divisible by all sizes
    const RingSchedule schedule = all_reduce_schedule(size - 1, size, elements, 100);
    EXPECT_EQ(elements_of(schedule.out),
              2 * elements * static_cast<std::uint64_t>(size - 1) / static_cast<std::uint64_t>(size));
    EXPECT_EQ(elements_of(schedule.in), elements_of(schedule.out));
  }
}

TEST(RingSchedule, a_frame_waits_for_the_frame_that_brought_its_elements) {
  const RingSchedule schedule = all_reduce_schedule(1, 4, 1001, 64);
  for (const RingFrame& frame : schedule.out) {
    if (frame.step == 0) {
      EXPECT_EQ(frame.needs, 0u);
      continue;
    }
    const RingFrame& twin = schedule.in[frame.needs - 1];
    EXPECT_EQ(twin.step + 1, frame.step);
    EXPECT_EQ(twin.offset, frame.offset);
    EXPECT_EQ(twin.count, frame.count);
  }
}

// Runs the schedules of all ranks by hand: every element must have been added once per rank, and then spread.
TEST(RingSchedule, every_element_is_summed_over_all_ranks_and_ends_everywhere) {
  const int size = 5;
  const std::uint64_t elements = 23;
  std::vector<std::vector<std::set<int>>> have(size, std::vector<std::set<int>>(elements));
  for (int rank = 0; rank < size; ++rank) {
    for (auto& element : have[static_cast<std::size_t>(rank)]) element = {rank};
  }
  for (int step = 0; step < 2 * (size - 1); ++step) {
    const auto before = have;
    for (int rank = 0; rank < size; ++rank) {
      for (const RingFrame& frame : all_reduce_schedule(rank, size, elements, 2).in) {
        if (frame.step != step) continue;
        for (std::uint64_t i = frame.offset; i < frame.offset + frame.count; ++i) {
          const auto& from = before[static_cast<std::size_t>((rank + size - 1) % size)][i];
          auto& to = have[static_cast<std::size_t>(rank)][i];
          if (!frame.add) to.clear();
          for (const int part : from) EXPECT_TRUE(to.insert(part).second) << "added twice";
        }
      }
    }
  }
  for (const auto& rank : have) {
    for (const auto& element : rank) EXPECT_EQ(element.size(), static_cast<std::size_t>(size));
  }
}

TEST(RingSchedule, a_broadcast_goes_around_once_and_stops_before_the_root) {
  for (int root = 0; root < 3; ++root) {
    const auto at = [&](int position) { return broadcast_schedule((root + position) % 3, 3, root, 10, 4); };
    EXPECT_TRUE(at(0).in.empty());
    EXPECT_EQ(elements_of(at(0).out), 10u);
    EXPECT_EQ(elements_of(at(1).in), 10u);
    EXPECT_EQ(elements_of(at(1).out), 10u);
    EXPECT_EQ(at(1).out[1].needs, 2u);
    EXPECT_EQ(elements_of(at(2).in), 10u);
    EXPECT_TRUE(at(2).out.empty());
  }
}

}  // namespace
}  // namespace evenkeel::trainer
