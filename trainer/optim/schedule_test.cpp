// Golden values of training-semantics, batches and schedules.
#include "trainer/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "trainer/optim/learning_rate.h"

namespace evenkeel::trainer {
namespace {

using contract::LearningRateScaling;
using contract::Schedule;

contract::ScheduleSpec schedule_of(Schedule kind, double final_share = 0) {
  contract::ScheduleSpec schedule;
  schedule.kind = kind;
  schedule.final_share = final_share;
  return schedule;
}

TEST(Schedule, cosine_follows_the_golden_values) {
  const struct {
    double final_share, step, expected;
  } goldens[] = {{0, 0, 0.1},      {0, 250, 0.085355339059},
                 {0, 500, 0.05},   {0, 750, 0.014644660941},
                 {0, 1000, 0},     {0, 2000, 0},
                 {0.1, 0, 0.1},    {0.1, 500, 0.055},
                 {0.1, 1000, 0.01}};
  for (const auto& golden : goldens) {
    const double share =
        schedule_share(schedule_of(Schedule::kCosine, golden.final_share), {golden.step / 1000, 0});
    EXPECT_NEAR(0.1 * share, golden.expected, 1e-12) << golden.step << " final " << golden.final_share;
  }
}

TEST(Schedule, poly_falls_by_its_power_to_the_final_share) {
  contract::ScheduleSpec poly = schedule_of(Schedule::kPoly);
  EXPECT_DOUBLE_EQ(schedule_share(poly, {0.25, 0}), 0.75);
  poly.power = 2;
  EXPECT_DOUBLE_EQ(schedule_share(poly, {0.5, 0}), 0.25);
  poly.final_share = 0.1;
  EXPECT_DOUBLE_EQ(schedule_share(poly, {0.5, 0}), 0.325);
  EXPECT_DOUBLE_EQ(schedule_share(poly, {1.5, 0}), 0.1);
  poly.power = 0.5;
  EXPECT_DOUBLE_EQ(schedule_share(poly, {1.0, 0}), 0.1);
}

TEST(Schedule, step_falls_at_each_milestone_in_any_order) {
  contract::ScheduleSpec step = schedule_of(Schedule::kStep);
  step.milestones = {80, 30, 60};
  const std::pair<double, double> table[] = {{0, 1},     {29.999, 1}, {30, 0.1},   {59, 0.1},
                                             {60, 0.01}, {80, 0.001}, {1e6, 0.001}};
  for (const auto& [epochs, share] : table) {
    EXPECT_DOUBLE_EQ(schedule_share(step, {0, epochs}), share) << epochs;
  }
  // 3 epochs of 7 samples, counted as 21 * (1/7).
  EXPECT_DOUBLE_EQ(schedule_share(step, {0, 30 - 1e-12}), 0.1);
}

TEST(Warmup, rises_as_a_share_of_the_peak) {
  // Size 4, 5 epochs of 100 steps; at the first step, in the middle of the third epoch, at the last.
  const std::pair<double, double> table[] = {{0, 0.2515}, {250, 0.6265}, {499, 1.0}};
  for (const auto& [step, share] : table) {
    EXPECT_NEAR(warmup_rate(0.1, 4, (step + 1) / 500) / 0.4, share, 1e-12) << step;
  }
}

TEST(Warmup, line_from_one_rate_to_another) {
  const std::pair<double, double> table[] = {{0, 0.01}, {50, 0.055}, {99, 0.0991}, {100, 0.1}, {150, 0.1}};
  for (const auto& [step, rate] : table) EXPECT_NEAR(warmup_rate(0.01, 10, step / 100), rate, 1e-12) << step;
}

// A job in steps of equal size, as it asks for its rate.
struct Course {
  contract::TrainingSpec training;
  std::int64_t train_samples, batch, steps;
  double at(std::int64_t step) const {
    return learning_rate(training, {step * batch, batch, steps * batch, train_samples,
                                    static_cast<double>(batch), batch}).value();
  }
};

// .01 -> .1 over 100 steps, cosine over the 1,000 after them. The line counts s+1 (the first step moves), so
// its values stand one step earlier than where the line counts s.
TEST(LearningRate, schedule_runs_over_what_the_warm_up_leaves) {
  Course course{{}, 6400, 64, 1100};
  course.training.optimizer.learning_rate = 0.01;
  course.training.batch_per_replica = 6;  // with G = 60, k = 10
  course.training.learning_rate_scaling = LearningRateScaling::kLinear;
  course.training.schedule = schedule_of(Schedule::kCosine);
  course.training.schedule.warmup_epochs = 1;
  const auto rate = [&](std::int64_t step) {
    return learning_rate(course.training, {step * 64, 64, 1100 * 64, 6400, 60, 60}).value();
  };
  EXPECT_NEAR(rate(49), 0.055, 1e-12);
  EXPECT_NEAR(rate(98), 0.0991, 1e-12);
  EXPECT_NEAR(rate(99), 0.1, 1e-12);
  EXPECT_NEAR(rate(100), 0.1, 1e-12);
  EXPECT_NEAR(rate(600), 0.05, 1e-12);
  EXPECT_NEAR(rate(1100), 0.0, 1e-12);
}

// 5,120 samples, 64 for each of 4 ranks, warm-up of 5 epochs of 20 steps.
TEST(LearningRate, warm_up_is_one_table_for_linear_and_one_without_scaling) {
  Course course{{}, 5120, 256, 400};
  course.training.batch_per_replica = 64;
  course.training.schedule.warmup_epochs = 5;
  const std::tuple<LearningRateScaling, std::int64_t, double> table[] = {
      {LearningRateScaling::kLinear, 0, 0.103}, {LearningRateScaling::kLinear, 49, 0.25},
      {LearningRateScaling::kLinear, 99, 0.4},  {LearningRateScaling::kLinear, 100, 0.4},
      {LearningRateScaling::kLinear, 399, 0.4}, {LearningRateScaling::kNone, 0, 0.001},
      {LearningRateScaling::kNone, 49, 0.05},   {LearningRateScaling::kNone, 99, 0.1},
      {LearningRateScaling::kNone, 399, 0.1},   {LearningRateScaling::kSqrt, 99, 0.2},
      {LearningRateScaling::kSqrt, 49, 0.15},
  };
  for (const auto& [scaling, step, rate] : table) {
    course.training.learning_rate_scaling = scaling;
    EXPECT_NEAR(course.at(step), rate, 1e-12) << "step " << step << " scaling " << static_cast<int>(scaling);
  }
}

TEST(LearningRate, a_change_of_the_batch_does_not_stretch_the_course) {
  contract::TrainingSpec training;
  training.learning_rate_scaling = LearningRateScaling::kNone;
  training.schedule = schedule_of(Schedule::kCosine);
  // Half of 10,000 samples are done: whatever the batch, the rate is the middle of the curve.
  for (const std::int64_t batch : {1, 10, 333, 5000}) {
    EXPECT_NEAR(learning_rate(training, {5000, batch, 10000, 1000, static_cast<double>(batch), 10}).value(), 0.05, 1e-12);
  }
}

TEST(LearningRate, milestones_count_epochs_since_the_start_and_wait_for_the_warm_up) {
  Course course{{}, 100, 10, 100};
  course.training.schedule = schedule_of(Schedule::kStep);
  course.training.schedule.milestones = {1, 4};
  course.training.schedule.warmup_epochs = 2;
  EXPECT_NEAR(course.at(9), 0.05, 1e-12);
  EXPECT_NEAR(course.at(19), 0.1, 1e-12);
  EXPECT_NEAR(course.at(20), 0.01, 1e-12);
  EXPECT_NEAR(course.at(39), 0.01, 1e-12);
  EXPECT_NEAR(course.at(40), 0.001, 1e-12);
}

TEST(LearningRate, a_warm_up_longer_than_the_training_never_reaches_the_peak) {
  Course course{{}, 100, 10, 10};
  course.training.schedule = schedule_of(Schedule::kCosine);
  course.training.schedule.warmup_epochs = 4;
  EXPECT_NEAR(course.at(0), 0.1 / 40, 1e-12);
  EXPECT_NEAR(course.at(9), 0.025, 1e-12);
  EXPECT_NEAR(course.at(40), 0.0, 1e-12);
}

}  // namespace
}  // namespace evenkeel::trainer
