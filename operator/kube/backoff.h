// Waiting times that double: 800 ms -> 30 s with jitter for reads and watches (as client-go's reflector). A
// quiet stretch starts it afresh. Value with state; one thread.
#pragma once

#include <algorithm>
#include <random>

#include "base/clock.h"

namespace evenkeel::oper {

struct BackoffLimits {
  base::Duration first = std::chrono::milliseconds(800);
  base::Duration longest = std::chrono::seconds(30);
  double factor = 2;
  double jitter = 1;  // a wait is w .. w * (1 + jitter)
  base::Duration reset_after = std::chrono::minutes(2);
};

class Backoff {
 public:
  explicit Backoff(BackoffLimits limits = {}, unsigned seed = std::random_device{}())
      : limits_(limits), next_(limits.first), random_(seed) {}

  base::Duration next(base::MonotonicTime now) {
    if (now - last_ > limits_.reset_after) next_ = limits_.first;
    last_ = now;
    const base::Duration wait = next_;
    next_ = std::min(limits_.longest, base::from_seconds(base::seconds(next_) * limits_.factor));
    return base::from_seconds(base::seconds(wait) *
                              (1 + limits_.jitter * std::uniform_real_distribution(0.0, 1.0)(random_)));
  }

  void reset() { next_ = limits_.first; }

 private:
  BackoffLimits limits_;
  base::Duration next_;
  base::MonotonicTime last_{};
  std::minstd_rand random_;
};

}  // namespace evenkeel::oper
