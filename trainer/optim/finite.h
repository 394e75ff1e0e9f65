// Detection of non-finite numbers before they reach the weights. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "trainer/graph/plan.h"

namespace evenkeel::trainer {

// True when no element is Inf or NaN. One fast pass: reads each element once.
bool all_finite(std::span<const float> values);
// Square of the Euclidean norm, in double; the order of the additions is fixed.
double squared_norm(std::span<const float> values);

// kNumerical naming the step and the loss. `loss` is the reduced sum.
base::Status check_loss(double loss_sum, std::int64_t step);
// kNumerical naming the step and the first parameter whose gradient is not finite, or the first layer whose
// batch statistics are not. `gradients`: arena 3, or only its common layout (then without the statistics).
base::Status check_gradients(const Plan& plan, std::span<const float> gradients, std::int64_t step);

}  // namespace evenkeel::trainer
