#include "trainer/optim/optimizer.h"

#include <cmath>
#include <string>

#include "trainer/optim/adam.h"
#include "trainer/optim/lars.h"
#include "trainer/optim/sgd.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Status;

Error out_of_range(const char* member, double value, const char* must_be) {
  return {ErrorCode::kInvalidInput, std::string("training.optimizer.") + member + " is " +
                                        std::to_string(value) + ", must be " + must_be};
}

Status check_share(const char* member, double value) {
  if (value >= 0 && value < 1) return {};
  return out_of_range(member, value, "at least 0 and below 1");
}

Status check_not_negative(const char* member, double value) {
  if (value >= 0 && std::isfinite(value)) return {};
  return out_of_range(member, value, "at least 0");
}

Status check_adam(const contract::OptimizerSpec& spec) {
  EVENKEEL_TRY(check_share("beta1", spec.beta1));
  EVENKEEL_TRY(check_share("beta2", spec.beta2));
  // With 0 a weight that has never seen a gradient would become 0/0.
  const double epsilon = adam_epsilon(spec);
  if (epsilon > 0 && std::isfinite(epsilon)) return {};
  return out_of_range("epsilon", epsilon, "greater than 0");
}

Status check_lars(const contract::OptimizerSpec& spec) {
  EVENKEEL_TRY(check_share("momentum", spec.momentum));
  EVENKEEL_TRY(check_not_negative("epsilon", spec.epsilon.value_or(0.0)));
  return check_not_negative("trustCoefficient", spec.trust_coefficient);
}

}  // namespace

base::Result<std::unique_ptr<Optimizer>> make_optimizer(const contract::OptimizerSpec& spec,
                                                        const Plan* plan) {
  EVENKEEL_TRY(check_not_negative("weightDecay", spec.weight_decay));
  const auto segments = [&](Segmentation how) { return segments_of(plan, spec.weight_decay, how); };
  if (spec.type == "sgd") {
    EVENKEEL_TRY(check_share("momentum", spec.momentum));
    return std::unique_ptr<Optimizer>(std::make_unique<Sgd>(spec, segments(Segmentation::kMerged)));
  }
  if (spec.type == "adam" || spec.type == "adamw") {
    EVENKEEL_TRY(check_adam(spec));
    return std::unique_ptr<Optimizer>(std::make_unique<Adam>(spec, segments(Segmentation::kMerged)));
  }
  if (spec.type == "lars") {
    EVENKEEL_TRY(check_lars(spec));
    return std::unique_ptr<Optimizer>(std::make_unique<Lars>(spec, segments(Segmentation::kPerParameter)));
  }
  return Error{ErrorCode::kUnsupported, "training.optimizer.type \"" + spec.type +
                                            "\" is not supported; supported: sgd, adam, adamw, lars"};
}

double clip_scale(double squared_norm_of_sum, double count, double clip_norm) {
  if (clip_norm <= 0 || count <= 0) return 1.0;
  const double norm = std::sqrt(squared_norm_of_sum) / count;
  return norm > clip_norm ? clip_norm / norm : 1.0;
}

}  // namespace evenkeel::trainer
