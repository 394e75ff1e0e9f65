#include "trainer/optim/learning_rate.h"

#include <cmath>

namespace evenkeel::trainer {

using base::Error;
using base::ErrorCode;
using base::Result;
using contract::LearningRateScaling;

std::int64_t base_batch(const contract::TrainingSpec& training, std::int64_t global_batch_at_creation) {
  return training.batch_per_replica.value_or(global_batch_at_creation);
}

Result<double> batch_factor(LearningRateScaling scaling, const std::string& optimizer_type,
                            std::int64_t global_batch, std::int64_t base_batch) {
  if (global_batch < 1 || base_batch < 1) {
    return Error{ErrorCode::kInvalidInput, "batch sizes must be at least 1, are " +
                                               std::to_string(global_batch) + " and " +
                                               std::to_string(base_batch)};
  }
  if (scaling == LearningRateScaling::kAuto) {
    if (optimizer_type != "sgd") {
      return Error{ErrorCode::kUnsupported,
                   "training.learningRate.scaling Auto has no rule for optimizer \"" + optimizer_type +
                       "\": set None, Linear or Sqrt"};
    }
    scaling = LearningRateScaling::kLinear;
  }
  const double k = static_cast<double>(global_batch) / static_cast<double>(base_batch);
  if (scaling == LearningRateScaling::kNone) return 1.0;
  return scaling == LearningRateScaling::kLinear ? k : std::sqrt(k);
}

Result<double> scheduled_rate(contract::Schedule schedule, double base_rate, double position) {
  if (schedule == contract::Schedule::kConstant) return base_rate;
  return Error{ErrorCode::kUnsupported,
               "training.learningRate.schedule: only constant is supported (asked at position " +
                   std::to_string(position) + ")"};
}

Result<double> learning_rate(const contract::TrainingSpec& training, std::int64_t global_batch,
                             std::int64_t global_batch_at_creation, double position) {
  EVENKEEL_ASSIGN(const double factor,
                  batch_factor(training.learning_rate_scaling, training.optimizer.type, global_batch,
                               base_batch(training, global_batch_at_creation)));
  EVENKEEL_ASSIGN(const double rate,
                  scheduled_rate(training.schedule, training.optimizer.learning_rate, position));
  return rate * factor;
}

}  // namespace evenkeel::trainer
