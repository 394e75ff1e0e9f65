#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/clock_fake.h"
#include "base/time_text.h"

namespace evenkeel::base {
namespace {

using std::chrono::seconds;

TEST(Clock, real_time_never_goes_back) {
  const MonotonicTime first = real_clock().now();
  real_clock().sleep_for(std::chrono::milliseconds(1));
  EXPECT_GE(real_clock().now() - first, std::chrono::milliseconds(1));
}

TEST(Clock, seconds_convert_both_ways) {
  EXPECT_DOUBLE_EQ(base::seconds(from_seconds(1.5)), 1.5);
  EXPECT_EQ(from_seconds(0.25), std::chrono::milliseconds(250));
}

TEST(FakeClock, moves_only_by_hand_and_both_times_together) {
  FakeClock clock;
  const MonotonicTime start = clock.now();
  EXPECT_EQ(clock.now(), start);
  EXPECT_EQ(to_rfc3339(clock.wall_now()), "2026-01-01T00:00:00Z");
  clock.advance(seconds(90));
  EXPECT_EQ(clock.now() - start, seconds(90));
  EXPECT_EQ(to_rfc3339(clock.wall_now()), "2026-01-01T00:01:30Z");
}

TEST(FakeClock, a_wall_jump_leaves_monotonic_time_alone) {
  FakeClock clock;
  const MonotonicTime start = clock.now();
  clock.set_wall(WallTime(seconds(0)));
  EXPECT_EQ(clock.now(), start);
  EXPECT_EQ(to_rfc3339(clock.wall_now()), "1970-01-01T00:00:00Z");
}

TEST(FakeClock, a_sleep_advances_and_is_recorded) {
  FakeClock clock;
  const MonotonicTime start = clock.now();
  clock.sleep_for(seconds(2));
  clock.sleep_for(seconds(4));
  EXPECT_EQ(clock.now() - start, seconds(6));
  EXPECT_EQ(clock.sleeps(), (std::vector<Duration>{seconds(2), seconds(4)}));
}

TEST(FakeClock, a_waiting_sleeper_wakes_when_another_thread_advances_far_enough) {
  FakeClock clock(FakeClock::SleepRule::kWaits);
  std::atomic<bool> awake{false};
  std::thread sleeper([&] {
    clock.sleep_for(seconds(10));
    awake = true;
  });
  clock.wait_for_sleepers(1);
  clock.advance(seconds(9));
  EXPECT_FALSE(awake);
  clock.advance(seconds(1));
  sleeper.join();
  EXPECT_TRUE(awake);
}

}  // namespace
}  // namespace evenkeel::base
