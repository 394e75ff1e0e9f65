#include "trainer/optim/finite.h"

#include <array>
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
  // Lanes that do not wait for each other: the same order of additions on every machine, and vectors.
  constexpr std::size_t kLanes = 16;
  std::array<double, kLanes> lanes{};
  const std::size_t whole = values.size() / kLanes * kLanes;
  for (std::size_t at = 0; at < whole; at += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto value = static_cast<double>(values[at + lane]);
      lanes[lane] += value * value;
    }
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (const float value : values.subspan(whole)) sum += static_cast<double>(value) * value;
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
  const auto bad = [&](const std::string& what) {
    return base::Error{base::ErrorCode::kNumerical,
                       "step " + std::to_string(step) + ": " + what +
                           " not finite; lower the learning rate, or check the data"};
  };
  for (const PlanParameter& p : plan.parameters) {
    if (!all_finite(gradients.subspan(p.offset_elements, static_cast<std::size_t>(p.elements))))
      return bad("the gradient of " + p.name + " is");
  }
  for (const PlanStatistic& s : plan.statistics) {
    const auto elements = static_cast<std::size_t>(2 * s.channels + 2);
    if (s.sums_offset_elements + elements > gradients.size()) continue;
    if (!all_finite(gradients.subspan(s.sums_offset_elements, elements)))
      return bad("the batch statistics of " + s.layer + " are");
  }
  return base::Error{base::ErrorCode::kInternal,
                     "step " + std::to_string(step) + ": the padding of the gradient arena is not finite"};
}

}  // namespace evenkeel::trainer
