#include "tests/support/hollow_node/pod_queue.h"

#include <gtest/gtest.h>

namespace evenkeel::support {
namespace {

using namespace std::chrono_literals;

base::MonotonicTime in(base::Duration time) {
  return base::real_clock().now() + time;
}

TEST(PodQueue, the_earliest_comes_first_and_the_earlier_of_two_times_counts) {
  PodQueue queue;
  queue.add("a", in(-1ms));
  queue.add("b", in(-3ms));
  queue.add("c", in(1h));
  queue.add("c", in(-2ms));
  queue.add("a", in(1h));
  EXPECT_EQ(queue.take(), "b");
  EXPECT_EQ(queue.take(), "c");
  EXPECT_EQ(queue.take(), "a");
}

TEST(PodQueue, a_pod_that_is_looked_at_comes_again_only_afterwards) {
  PodQueue queue;
  queue.add("a", in(-2ms));
  EXPECT_EQ(queue.take(), "a");
  queue.add("a", in(-2ms));
  queue.add("b", in(-1ms));
  EXPECT_EQ(queue.take(), "b");
  queue.done("a");
  EXPECT_EQ(queue.take(), "a");
  queue.done("a");
  queue.stop();
  EXPECT_EQ(queue.take(), std::nullopt);
}

}  // namespace
}  // namespace evenkeel::support
