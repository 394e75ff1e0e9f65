#include "trainer/loop/step_timer.h"

#include <gtest/gtest.h>

#include "base/clock_fake.h"
#include "trainer/loop/core_wait.h"

namespace evenkeel::trainer {
namespace {

TEST(StepTimer, standing_still_in_a_reduction_is_a_ranks_own_time) {
  base::FakeClock clock;
  double had_no_core = 5;  // before the first step: nobody's
  StepTimer timer(clock, [&] { return had_no_core; });
  const auto passes = [&](double seconds, double without_core) {
    clock.advance(base::from_seconds(seconds));
    had_no_core += without_core;
  };
  timer.enter(StepPhase::kForward);
  passes(0.020, 0.010);  // is in forward already
  timer.enter(StepPhase::kCollectiveWait);
  passes(0.060, 0.050);
  timer.enter(StepPhase::kOptimizer);
  passes(0.001, 0.001);
  timer.enter(StepPhase::kOther);
  const contract::PhaseSeconds phases = timer.take();
  EXPECT_NEAR(phases.forward, 0.020, 1e-9);
  EXPECT_NEAR(phases.backward, 0.050, 1e-9);
  EXPECT_NEAR(phases.collective_wait, 0.010, 1e-9);
  EXPECT_NEAR(phases.optimizer, 0.001, 1e-9);
  EXPECT_NEAR(phases.total(), 0.081, 1e-9) << "phases add up to the wall time whatever is told";
  EXPECT_NEAR(timer.no_core().seconds, 0.061, 1e-9);
  EXPECT_NEAR(timer.no_core().reducing_seconds, 0.050, 1e-9);
  passes(0.020, 0.020);  // between steps: nobody's
  timer.enter(StepPhase::kForward);
  passes(0.010, 0.004);
  timer.take();
  EXPECT_NEAR(timer.no_core().seconds, 0.004, 1e-9);
  EXPECT_EQ(timer.no_core().reducing_seconds, 0) << "of the last take alone";
}

TEST(StepTimer, never_more_than_the_reduction_took) {
  base::FakeClock clock;
  double had_no_core = 0;
  StepTimer timer(clock, [&] { return had_no_core; });
  timer.enter(StepPhase::kCollectiveWait);
  clock.advance(base::from_seconds(0.010));
  had_no_core = 3;
  const contract::PhaseSeconds phases = timer.take();
  EXPECT_NEAR(phases.backward, 0.010, 1e-9);
  EXPECT_NEAR(phases.collective_wait, 0, 1e-9);
}

TEST(CoreWait, is_read_from_the_threads_statistics) {
  EXPECT_NEAR(core_wait_of("606479509 1390439472 18\n").value_or(-1), 1.390439472, 1e-12);
  EXPECT_FALSE(core_wait_of("0 0 0\n")) << "a kernel that does not count";
  EXPECT_FALSE(core_wait_of(""));
  EXPECT_FALSE(core_wait_of("12"));
  EXPECT_FALSE(core_wait_of("12 x 3"));
  const CoreWait mine;
  const double before = mine.seconds();
  EXPECT_GE(before, 0);
  EXPECT_GE(mine.seconds(), before);
}

}  // namespace
}  // namespace evenkeel::trainer
