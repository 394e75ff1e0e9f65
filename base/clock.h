// Time as an interface, so that tests move it by hand (clock_fake.h). Monotonic time decides; wall time is
// only written down. Implementations are thread safe.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace evenkeel::base {

using Duration = std::chrono::nanoseconds;
using MonotonicTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonotonicTime now() const = 0;
  virtual WallTime wall_now() const = 0;
  virtual void sleep_for(Duration duration) = 0;
};

// The machine's clock.
Clock& real_clock();

inline double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}
inline Duration from_seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

}  // namespace evenkeel::base
