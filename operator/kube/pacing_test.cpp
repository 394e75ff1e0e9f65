#include <gtest/gtest.h>

#include "operator/kube/backoff.h"
#include "operator/kube/rate_limiter.h"

namespace evenkeel::oper {
namespace {

using namespace std::chrono_literals;
const base::MonotonicTime kStart{1h};

TEST(RateLimiter, lets_a_burst_pass_and_spaces_the_rest) {
  RateLimiter limiter(10, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limiter.reserve(kStart), 0ns);
  EXPECT_EQ(limiter.reserve(kStart), 100ms);
  EXPECT_EQ(limiter.reserve(kStart), 200ms);
  EXPECT_EQ(limiter.reserve(kStart + 300ms), 0ns);
}

TEST(RateLimiter, never_holds_more_than_the_burst) {
  RateLimiter limiter(100, 2);
  EXPECT_TRUE(limiter.try_take(kStart));
  EXPECT_TRUE(limiter.try_take(kStart + 1h));
  EXPECT_TRUE(limiter.try_take(kStart + 1h));
  EXPECT_FALSE(limiter.try_take(kStart + 1h));
  EXPECT_TRUE(limiter.try_take(kStart + 1h + 10ms));
}

TEST(Backoff, doubles_to_the_longest_within_its_jitter_and_starts_afresh_after_quiet) {
  Backoff backoff({}, 7);
  base::MonotonicTime now = kStart;
  for (const base::Duration base : {800ms, 1600ms, 3200ms, 6400ms, 12800ms, 25600ms, 30000ms, 30000ms}) {
    const base::Duration wait = backoff.next(now);
    EXPECT_GE(wait, base);
    EXPECT_LE(wait, 2 * base);
    now += 1s;
  }
  now += 2min + 1s;
  EXPECT_LE(backoff.next(now), 1600ms);
}

}  // namespace
}  // namespace evenkeel::oper
