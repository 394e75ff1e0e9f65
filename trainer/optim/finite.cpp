#include "trainer/optim/finite.h"

#include <bit>
#include <cmath>
#include <string>

namespace evenkeel::trainer {

bool all_finite(std::span<const float> values) {
  // By bits, so that no compiler option about floating point can remove it: an exponent of all ones is Inf or
  // NaN.
  constexpr std::uint32_t kExponent = 0x7f800000;
  std::uint32_t bad = 0;
  for (const float value : values) bad |= (std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent;
  return bad == 0;
}

double squared_norm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return sum;
}

base::Status check_loss(double loss_sum, std::int64_t step) {
  if (std::isfinite(loss_sum)) return {};
  return base::Error{base::ErrorCode::kNumerical,
                     "step " + std::to_string(step) + ": the loss is " + std::to_string(loss_sum) +
                         "; lower the learning rate, or check the data for extreme values"};
}

base::Status check_gradients(const Plan& plan, std::span<const float> gradients, std::int64_t step) {
  if (all_finite(gradients)) return {};
  for (const PlanParameter& p : plan.parameters) {
    if (all_finite(gradients.subspan(p.offset_elements, static_cast<std::size_t>(p.elements)))) continue;
    return base::Error{base::ErrorCode::kNumerical,
                       "step " + std::to_string(step) + ": the gradient of " + p.name +
                           " is not finite; lower the learning rate, or check the data"};
  }
  return base::Error{base::ErrorCode::kInternal,
                     "step " + std::to_string(step) + ": the padding of the gradient arena is not finite"};
}

}  // namespace evenkeel::trainer
