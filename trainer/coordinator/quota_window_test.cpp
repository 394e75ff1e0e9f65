#include "trainer/coordinator/quota_window.h"

#include <gtest/gtest.h>

namespace evenkeel::trainer {
namespace {

TEST(QuotaWindow, tells_the_recent_share_of_periods) {
  QuotaWindow window;
  EXPECT_FALSE(window.throttled_share());
  window.add(0, 0, 0);
  EXPECT_FALSE(window.throttled_share()) << "no quota";
  window.add(1, 100, 100);
  EXPECT_FALSE(window.throttled_share()) << "what came before the first count is start-up";
  window.add(1.25, 102, 100);
  EXPECT_FALSE(window.throttled_share()) << "two periods are a moment";
  window.add(2.25, 112, 106);
  EXPECT_DOUBLE_EQ(window.throttled_share().value_or(-1), 0.5);
  // Throttled no more: after the window's length that is what it says.
  for (int i = 1; i <= 12; ++i) window.add(2.25 + i, 112 + 10 * i, 106);
  EXPECT_DOUBLE_EQ(window.throttled_share().value_or(-1), 0);
}

TEST(QuotaWindow, another_process_and_other_shares_begin_anew) {
  QuotaWindow window;
  window.add(1, 100, 0);
  window.add(2, 110, 10);
  EXPECT_DOUBLE_EQ(window.throttled_share().value_or(-1), 1);
  window.restart();
  EXPECT_FALSE(window.throttled_share());
  window.add(3, 120, 10);
  EXPECT_DOUBLE_EQ(window.throttled_share().value_or(-1), 0);
  window.add(4, 3, 3);
  EXPECT_FALSE(window.throttled_share()) << "it counts from its own beginning";
}

}  // namespace
}  // namespace evenkeel::trainer
