#include "trainer/optim/learning_rate.h"

#include <cmath>

#include "trainer/optim/schedule.h"

namespace evenkeel::trainer {

using base::Error;
using base::ErrorCode;
using base::Result;
using contract::LearningRateScaling;

namespace {

Result<LearningRateScaling> scaling_for(const std::string& optimizer_type) {
  if (optimizer_type == "sgd" || optimizer_type == "lars") return LearningRateScaling::kLinear;
  if (optimizer_type == "adam" || optimizer_type == "adamw") return LearningRateScaling::kSqrt;
  return Error{ErrorCode::kUnsupported, "training.learningRate.scaling Auto has no rule for optimizer \"" +
                                            optimizer_type + "\": set None, Linear or Sqrt"};
}

Error bad_position(const RatePosition& at) {
  return Error{ErrorCode::kInvalidInput, "learning rate: " + std::to_string(at.samples_done) + " of " +
                                             std::to_string(at.samples_planned) + " samples, " +
                                             std::to_string(at.train_samples) +
                                             " an epoch: there is nothing to plan with"};
}

}  // namespace

std::int64_t base_batch(const contract::TrainingSpec& training, std::int64_t global_batch_at_creation) {
  return training.batch_per_replica.value_or(global_batch_at_creation);
}

Result<double> batch_factor(LearningRateScaling scaling, const std::string& optimizer_type,
                            double global_batch, std::int64_t base_batch) {
  if (!(global_batch >= 1) || base_batch < 1) {
    return Error{ErrorCode::kInvalidInput, "batch sizes must be at least 1, are " +
                                               std::to_string(global_batch) + " and " +
                                               std::to_string(base_batch)};
  }
  if (scaling == LearningRateScaling::kAuto) {
    EVENKEEL_ASSIGN(scaling, scaling_for(optimizer_type));
  }
  const double k = global_batch / static_cast<double>(base_batch);
  if (scaling == LearningRateScaling::kNone) return 1.0;
  return scaling == LearningRateScaling::kLinear ? k : std::sqrt(k);
}

Result<double> learning_rate(const contract::TrainingSpec& training, const RatePosition& at) {
  if (at.train_samples < 1 || at.samples_done < 0 || at.step_samples < 0) return bad_position(at);
  EVENKEEL_ASSIGN(const double factor,
                  batch_factor(training.learning_rate_scaling, training.optimizer.type, at.global_batch,
                               base_batch(training, at.global_batch_at_creation)));
  const double base_rate = training.optimizer.learning_rate;
  const auto done = static_cast<double>(at.samples_done), epoch = static_cast<double>(at.train_samples);
  const double warmup = training.schedule.warmup_epochs * epoch;
  if (done < warmup)
    return warmup_rate(base_rate, factor, (done + static_cast<double>(at.step_samples)) / warmup);
  // A warm-up that takes all of the training leaves no rest: then the schedule is at its end.
  const double rest = static_cast<double>(at.samples_planned) - warmup;
  const double share = rest > 0 ? (done - warmup) / rest : 1.0;
  return base_rate * factor * schedule_share(training.schedule, {share, done / epoch});
}

Result<double> momentum_correction(const contract::TrainingSpec& training, const RatePosition& at,
                                   double global_batch_before) {
  if (global_batch_before <= 0 || global_batch_before == at.global_batch) return 1.0;
  RatePosition before = at;
  before.global_batch = global_batch_before;
  EVENKEEL_ASSIGN(const double old_rate, learning_rate(training, before));
  EVENKEEL_ASSIGN(const double new_rate, learning_rate(training, at));
  return old_rate > 0 ? new_rate / old_rate : 1.0;
}

}  // namespace evenkeel::trainer
