#include "trainer/optim/learning_rate.h"

#include <gtest/gtest.h>

namespace evenkeel::trainer {
namespace {

using contract::LearningRateScaling;

TEST(LearningRate, factor_follows_the_rule) {
  EXPECT_DOUBLE_EQ(batch_factor(LearningRateScaling::kLinear, "sgd", 256, 64).value(), 4.0);
  EXPECT_DOUBLE_EQ(batch_factor(LearningRateScaling::kSqrt, "sgd", 256, 64).value(), 2.0);
  EXPECT_DOUBLE_EQ(batch_factor(LearningRateScaling::kNone, "sgd", 256, 64).value(), 1.0);
}

TEST(LearningRate, auto_is_linear_for_the_sgd_family_and_sqrt_for_the_adam_family) {
  for (const char* type : {"sgd", "lars"})
    EXPECT_DOUBLE_EQ(batch_factor(LearningRateScaling::kAuto, type, 256, 64).value(), 4.0) << type;
  for (const char* type : {"adam", "adamw"})
    EXPECT_DOUBLE_EQ(batch_factor(LearningRateScaling::kAuto, type, 256, 64).value(), 2.0) << type;
}

TEST(LearningRate, auto_without_a_rule_and_empty_batches_are_refused) {
  const auto refused = batch_factor(LearningRateScaling::kAuto, "rmsprop", 256, 64);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().message.find("rmsprop"), std::string::npos);
  EXPECT_EQ(batch_factor(LearningRateScaling::kLinear, "sgd", 256, 0).error().code,
            base::ErrorCode::kInvalidInput);
}

TEST(LearningRate, momentum_is_corrected_by_what_another_batch_makes_of_the_rate) {
  contract::TrainingSpec training;
  training.global_batch = 64;
  training.schedule.kind = contract::Schedule::kCosine;
  RatePosition at{300, 128, 1000, 1000, 128, 64};
  EXPECT_DOUBLE_EQ(momentum_correction(training, at, 64).value(), 2.0) << "whatever the schedule makes of both";
  EXPECT_EQ(momentum_correction(training, at, 128).value(), 1.0);
  EXPECT_EQ(momentum_correction(training, at, 0).value(), 1.0) << "not known";
  training.schedule.warmup_epochs = 1;
  // 428 of 1000 samples into the warm-up: eta (1 + 0.428) against eta * 0.428 of a factor that is no larger than 1.
  EXPECT_NEAR(momentum_correction(training, at, 64).value(), 1.428 / 0.428, 1e-12);
}

TEST(LearningRate, base_is_the_batch_of_a_replica_if_given_else_the_global_batch_at_creation) {
  contract::TrainingSpec training;
  const auto rate = [&](std::int64_t batch) {
    return learning_rate(training, {0, batch, 10000, 1000, static_cast<double>(batch), 256}).value();
  };
  training.batch_per_replica = 64;
  EXPECT_EQ(base_batch(training, 256), 64);
  EXPECT_DOUBLE_EQ(rate(256), 0.4);
  training.batch_per_replica.reset();
  training.global_batch = 256;
  EXPECT_EQ(base_batch(training, 256), 256);
  EXPECT_DOUBLE_EQ(rate(256), 0.1);
  EXPECT_DOUBLE_EQ(rate(512), 0.2);  // after a resize
}

TEST(LearningRate, a_position_without_an_epoch_is_refused) {
  EXPECT_EQ(learning_rate({}, {0, 8, 100, 0, 8, 8}).error().code, base::ErrorCode::kInvalidInput);
}

}  // namespace
}  // namespace evenkeel::trainer
