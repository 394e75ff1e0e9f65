#include "trainer/optim/optimizer.h"

#include <cmath>

#include "trainer/optim/sgd.h"

namespace evenkeel::trainer {

using base::Error;
using base::ErrorCode;

base::Result<std::unique_ptr<Optimizer>> make_optimizer(const contract::OptimizerSpec& spec,
                                                        const Plan* plan) {
  if (spec.type != "sgd") {
    return Error{ErrorCode::kUnsupported,
                 "training.optimizer.type \"" + spec.type + "\" is not supported; supported: sgd"};
  }
  if (!(spec.momentum >= 0 && spec.momentum < 1)) {
    return Error{ErrorCode::kInvalidInput, "training.optimizer.momentum is " + std::to_string(spec.momentum) +
                                               ", must be at least 0 and below 1"};
  }
  if (!(spec.weight_decay >= 0 && std::isfinite(spec.weight_decay))) {
    return Error{ErrorCode::kInvalidInput, "training.optimizer.weightDecay is " +
                                               std::to_string(spec.weight_decay) + ", must be at least 0"};
  }
  return std::unique_ptr<Optimizer>(std::make_unique<Sgd>(spec, segments_of(plan, spec.weight_decay)));
}

}  // namespace evenkeel::trainer
