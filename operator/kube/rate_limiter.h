// A token bucket: `rate` a second, `burst` at once. Used by kube/client for requests (not for watches) and by
// runtime for progress writes. Thread safe; time comes in as a value.
#pragma once

#include <mutex>

#include "base/clock.h"

namespace evenkeel::oper {

class RateLimiter {
 public:
  RateLimiter(double rate_per_second, double burst) : rate_(rate_per_second), burst_(burst), tokens_(burst) {}

  // Takes a token, borrowing from the future if there is none: how long to wait before acting on it.
  base::Duration reserve(base::MonotonicTime now);
  // Takes a token only if there is one.
  bool try_take(base::MonotonicTime now);

 private:
  void refill(base::MonotonicTime now);

  const double rate_;
  const double burst_;
  std::mutex mutex_;
  double tokens_;
  base::MonotonicTime last_{};
};

}  // namespace evenkeel::oper
