// The naive twin of the back end: the same plan, every operator as plain loops in double. Slow and obviously
// right; tests compare the fast operators with it. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/backend/cpu/engine.h"
#include "trainer/graph/plan.h"

namespace evenkeel::trainer {

struct ReferenceInput {
  std::span<const double> features;      // (batch, input_features)
  std::span<const std::int32_t> labels;  // (batch)
  std::vector<std::int64_t> ids = {};    // for dropout, as in StepInput
  std::uint64_t epoch = 0;
  std::uint64_t seed = 0;
};

struct ReferenceResult {
  LossSums sums;
  std::vector<std::vector<double>> tensors;  // by TensorId, each in memory of its own
};

// parameters: by place in plan.parameters. running: mean and variance of each of plan.statistics, one after
// the other; empty: zeros and ones. Sync statistics are those of one rank.
ReferenceResult run_reference(const Plan& plan, const std::vector<std::vector<double>>& parameters,
                              const ReferenceInput& input,
                              const std::vector<std::vector<double>>& running = {});

}  // namespace evenkeel::trainer
