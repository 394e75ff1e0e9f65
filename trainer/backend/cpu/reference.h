// The naive twin of the back end: the same plan, every operator as plain loops in double. Slow and obviously
// right; tests compare the fast operators with it. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/backend/cpu/engine.h"
#include "trainer/graph/plan.h"

namespace evenkeel::trainer {

struct ReferenceResult {
  LossSums sums;
  std::vector<std::vector<double>> tensors;  // by TensorId, each in memory of its own
};

// parameters: by place in plan.parameters. features (batch, input_features), labels (batch).
ReferenceResult run_reference(const Plan& plan, const std::vector<std::vector<double>>& parameters,
                              std::span<const double> features, std::span<const std::int32_t> labels);

}  // namespace evenkeel::trainer
