#include "trainer/strategy/fixed_point.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdlib>

namespace evenkeel::trainer {

void FixedPointSums::clear(std::size_t elements) {
  values_.assign(elements, 0);
  bad_ = false;
}

void FixedPointSums::add(std::span<const float> gradients) {
  assert(gradients.size() == values_.size());
  constexpr double kLargest = 4611686018427387904.0;  // 2^62
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const double scaled = static_cast<double>(gradients[i]) * kScale;
    std::int64_t sum = 0;
    // The comparison is false for what is not a number, too.
    if (!(std::abs(scaled) < kLargest) || __builtin_add_overflow(values_[i], std::llrint(scaled), &sum)) {
      bad_ = true;
    } else {
      values_[i] = sum;
    }
  }
}

void FixedPointSums::to_floats(std::span<float> gradients) const {
  assert(gradients.size() == values_.size());
  for (std::size_t i = 0; i < gradients.size(); ++i)
    gradients[i] = static_cast<float>(static_cast<double>(values_[i]) / kScale);
}

bool FixedPointSums::overflowed(int ranks) const {
  const std::int64_t most = (std::int64_t{1} << 62) / std::max(1, ranks);
  return bad_ || std::any_of(values_.begin(), values_.end(),
                             [&](std::int64_t value) { return value > most || value < -most; });
}

}  // namespace evenkeel::trainer
