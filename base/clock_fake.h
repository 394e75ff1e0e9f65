// A clock that tests move by hand. Thread safe.
// SleepRule::kAdvances: a sleeper moves the time itself, for tests with one thread. SleepRule::kWaits: a
// sleeper blocks until another thread has advanced far enough; wait_for_sleepers() tells that thread when it
// is safe to.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "base/clock.h"

namespace evenkeel::base {

class FakeClock : public Clock {
 public:
  enum class SleepRule { kAdvances, kWaits };

  // Starts at 2026-01-01T00:00:00Z and at one hour of monotonic time: "long ago" fits below it.
  explicit FakeClock(SleepRule rule = SleepRule::kAdvances) : rule_(rule) {}

  MonotonicTime now() const override {
    const std::lock_guard lock(mutex_);
    return now_;
  }

  WallTime wall_now() const override {
    const std::lock_guard lock(mutex_);
    return wall_;
  }

  void sleep_for(Duration duration) override {
    std::unique_lock lock(mutex_);
    sleeps_.push_back(duration);
    if (rule_ == SleepRule::kAdvances) return move(duration);
    const MonotonicTime until = now_ + duration;
    ++sleepers_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return now_ >= until; });
    --sleepers_;
  }

  void advance(Duration duration) {
    const std::lock_guard lock(mutex_);
    move(duration);
  }

  // The wall clock jumps, as after a correction by NTP; monotonic time does not.
  void set_wall(WallTime wall) {
    const std::lock_guard lock(mutex_);
    wall_ = wall;
  }

  // Blocks until `count` threads are inside sleep_for (SleepRule::kWaits).
  void wait_for_sleepers(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return sleepers_ >= count; });
  }

  // Every duration that was slept, in order: to test a back-off.
  std::vector<Duration> sleeps() const {
    const std::lock_guard lock(mutex_);
    return sleeps_;
  }

 private:
  void move(Duration duration) {
    now_ += duration;
    wall_ += duration;
    changed_.notify_all();
  }

  const SleepRule rule_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  MonotonicTime now_{std::chrono::hours(1)};
  WallTime wall_{std::chrono::seconds(1767225600)};
  int sleepers_ = 0;
  std::vector<Duration> sleeps_;
};

}  // namespace evenkeel::base
