// The machine's clock, except that a sleep ends early when the program is told to stop. Thread safe.
#pragma once

#include <condition_variable>
#include <mutex>

#include "base/clock.h"

namespace evenkeel::oper {

class StopClock : public base::Clock {
 public:
  base::MonotonicTime now() const override { return base::real_clock().now(); }
  base::WallTime wall_now() const override { return base::real_clock().wall_now(); }
  void sleep_for(base::Duration duration) override {
    std::unique_lock lock(mutex_);
    stopped_changed_.wait_for(lock, duration, [&] { return stopped_; });
  }
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    stopped_changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable stopped_changed_;
  bool stopped_ = false;
};

}  // namespace evenkeel::oper
