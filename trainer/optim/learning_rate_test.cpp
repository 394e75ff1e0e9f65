#include "trainer/optim/learning_rate.h"

#include <gtest/gtest.h>

namespace evenkeel::trainer {
namespace {

using contract::LearningRateScaling;

TEST(LearningRate, factor_follows_the_rule) {
  EXPECT_DOUBLE_EQ(batch_factor(LearningRateScaling::kLinear, "sgd", 256, 64).value(), 4.0);
  EXPECT_DOUBLE_EQ(batch_factor(LearningRateScaling::kSqrt, "sgd", 256, 64).value(), 2.0);
  EXPECT_DOUBLE_EQ(batch_factor(LearningRateScaling::kNone, "sgd", 256, 64).value(), 1.0);
  EXPECT_DOUBLE_EQ(batch_factor(LearningRateScaling::kAuto, "sgd", 256, 64).value(), 4.0);
}

TEST(LearningRate, auto_without_a_rule_and_empty_batches_are_refused) {
  EXPECT_EQ(batch_factor(LearningRateScaling::kAuto, "adam", 256, 64).error().code,
            base::ErrorCode::kUnsupported);
  EXPECT_EQ(batch_factor(LearningRateScaling::kLinear, "sgd", 256, 0).error().code,
            base::ErrorCode::kInvalidInput);
}

TEST(LearningRate, base_is_the_batch_of_a_replica_if_given_else_the_global_batch_at_creation) {
  contract::TrainingSpec training;
  training.batch_per_replica = 64;
  EXPECT_EQ(base_batch(training, 256), 64);
  EXPECT_DOUBLE_EQ(learning_rate(training, 256, 256, 0).value(), 0.4);
  training.batch_per_replica.reset();
  training.global_batch = 256;
  EXPECT_EQ(base_batch(training, 256), 256);
  EXPECT_DOUBLE_EQ(learning_rate(training, 256, 256, 0).value(), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(training, 512, 256, 0.5).value(), 0.2);  // after a resize
}

TEST(LearningRate, a_schedule_that_is_not_built_is_refused) {
  EXPECT_EQ(scheduled_rate(contract::Schedule::kCosine, 0.1, 0.5).error().code,
            base::ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace evenkeel::trainer
