#include "operator/runtime/work_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/clock_fake.h"

namespace evenkeel::oper {
namespace {

using namespace std::chrono_literals;

TEST(WorkQueue, a_key_that_is_added_many_times_comes_up_once) {
  base::FakeClock clock;
  WorkQueue queue(clock);
  for (int i = 0; i < 5; ++i) queue.add("a/t");
  EXPECT_EQ(queue.depth(), 1u);
  EXPECT_EQ(queue.try_take(), "a/t");
  EXPECT_FALSE(queue.try_take());
}

TEST(WorkQueue, never_two_runs_of_one_key_and_none_is_lost) {
  base::FakeClock clock;
  WorkQueue queue(clock);
  queue.add("k");
  ASSERT_TRUE(queue.try_take());
  queue.add("k");
  EXPECT_FALSE(queue.try_take());
  queue.done("k");
  EXPECT_EQ(queue.try_take(), "k");
  queue.done("k");
  EXPECT_FALSE(queue.try_take());
}

TEST(WorkQueue, a_delayed_key_comes_up_at_the_earliest_time_asked_for) {
  base::FakeClock clock;
  WorkQueue queue(clock);
  queue.add_after("k", 10s);
  queue.add_after("k", 3s);
  queue.add_after("k", 20s);
  clock.advance(2s);
  EXPECT_FALSE(queue.try_take());
  clock.advance(1s);
  EXPECT_EQ(queue.try_take(), "k");
  queue.done("k");
  clock.advance(1min);
  EXPECT_FALSE(queue.try_take());
}

TEST(WorkQueue, failures_of_one_key_double_from_5_ms_to_1000_s_and_success_starts_afresh) {
  base::FakeClock clock;
  WorkQueue queue(clock);
  base::Duration expected = 5ms;
  for (int i = 0; i < 25; ++i) {
    queue.retry("k");
    clock.advance(expected - 1ns);
    ASSERT_FALSE(queue.try_take()) << i;
    clock.advance(1ns);
    ASSERT_TRUE(queue.try_take()) << i;
    queue.done("k");
    expected = std::min<base::Duration>(expected * 2, 1000s);
    clock.advance(1s);  // the overall limit is not what is tested here
  }
  queue.forget_failures("k");
  queue.retry("k");
  clock.advance(5ms);
  EXPECT_TRUE(queue.try_take());
}

TEST(WorkQueue, failures_of_all_keys_together_are_ten_a_second_after_a_burst) {
  base::FakeClock clock;
  WorkQueue queue(clock);
  for (int i = 0; i < 120; ++i) queue.retry(std::to_string(i));
  clock.advance(5ms);
  int ready = 0;
  while (queue.try_take()) ++ready;
  EXPECT_EQ(ready, 100);
  clock.advance(1s);
  while (queue.try_take()) ++ready;
  EXPECT_EQ(ready, 110);
}

TEST(WorkQueue, many_threads_never_run_one_key_twice_at_once) {
  WorkQueue queue(base::real_clock());
  std::atomic<int> running[3] = {0, 0, 0};
  std::atomic<int> runs{0};
  std::atomic<bool> clash{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (const auto key = queue.take()) {
        const int k = std::stoi(*key);
        if (running[k].fetch_add(1) != 0) clash = true;
        ++runs;
        running[k].fetch_sub(1);
        queue.done(*key);
      }
    });
  }
  for (int i = 0; i < 3000; ++i) queue.add(std::to_string(i % 3));
  while (queue.depth() > 0) std::this_thread::yield();
  queue.stop();
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(clash);
  EXPECT_GE(runs, 3);
}

}  // namespace
}  // namespace evenkeel::oper
