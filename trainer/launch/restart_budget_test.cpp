#include "trainer/launch/restart_budget.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "contract/exit_codes.h"
#include "trainer/config/settings.h"

namespace evenkeel::trainer {
namespace {

constexpr int kKilled = 128 + SIGKILL;

contract::RestartSpec worker_scope() {
  contract::RestartSpec restart;
  restart.scope = contract::RestartScope::kWorker;
  return restart;
}

TEST(RestartInPlace, a_killed_crashed_or_lost_rank_is_started_again) {
  for (const int code : {kKilled, 128 + SIGSEGV, 70, 75}) EXPECT_TRUE(may_start_again(worker_scope(), code)) << code;
}

TEST(RestartInPlace, what_no_repetition_mends_is_not_repeated) {
  for (const int code : {0, 64, 65, 69, 74, 76, 78, 143, 1}) EXPECT_FALSE(may_start_again(worker_scope(), code)) << code;
}

TEST(RestartInPlace, a_rule_that_ends_the_job_is_obeyed) {
  contract::RestartSpec restart = worker_scope();
  contract::RestartRule rule;
  rule.on_exit_codes = {kKilled};
  rule.action = contract::RestartAction::kFailJob;
  restart.rules = {rule};
  EXPECT_FALSE(may_start_again(restart, kKilled));
  EXPECT_TRUE(may_start_again(restart, 75));
}

TEST(RestartInPlace, a_job_that_restarts_as_a_whole_takes_no_rank_back) {
  contract::RestartSpec restart = worker_scope();
  restart.scope = contract::RestartScope::kJob;
  EXPECT_FALSE(may_start_again(restart, kKilled));
}

TEST(RestartBudget, the_first_start_is_at_once_and_the_next_ones_wait_longer) {
  RestartBudget budget;
  EXPECT_EQ(budget.take(kKilled, 100), 0.0);
  EXPECT_EQ(budget.take(kKilled, 101), 1.0);
  EXPECT_EQ(budget.take(kKilled, 103), 2.0);
  EXPECT_EQ(budget.take(kKilled, 106), std::nullopt);
  EXPECT_EQ(budget.taken(), 3);
}

TEST(RestartBudget, what_is_long_past_does_not_count) {
  RestartBudget budget;
  for (const double now : {0.0, 10.0, 20.0}) EXPECT_TRUE(budget.take(kKilled, now).has_value());
  EXPECT_EQ(budget.take(kKilled, 599), std::nullopt);
  EXPECT_EQ(budget.take(kKilled, 600), 2.0);
  EXPECT_EQ(budget.take(kKilled, 5000), 0.0);
}

TEST(RestartBudget, a_rank_that_lost_the_others_gives_a_signal_time_to_come) {
  RestartBudget budget;
  EXPECT_EQ(budget.take(75, 0), 1.0);
}

TEST(RestartBudget, no_rank_outlives_the_numbers_that_tell_its_processes_apart) {
  RestartBudget budget;
  double now = 0;
  while (budget.take(kKilled, now)) now += 1000;
  EXPECT_LT(budget.taken(), Settings::kMaxRestartsInPod);
}

}  // namespace
}  // namespace evenkeel::trainer
