#include "operator/kube/rate_limiter.h"

#include <algorithm>

namespace evenkeel::oper {

void RateLimiter::refill(base::MonotonicTime now) {
  if (last_ != base::MonotonicTime{} && now > last_)
    tokens_ = std::min(burst_, tokens_ + base::seconds(now - last_) * rate_);
  last_ = std::max(last_, now);
}

base::Duration RateLimiter::reserve(base::MonotonicTime now) {
  const std::lock_guard lock(mutex_);
  refill(now);
  tokens_ -= 1;
  return tokens_ >= 0 ? base::Duration{0} : base::from_seconds(-tokens_ / rate_);
}

bool RateLimiter::try_take(base::MonotonicTime now) {
  const std::lock_guard lock(mutex_);
  refill(now);
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

}  // namespace evenkeel::oper
