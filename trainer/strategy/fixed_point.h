// Sums of fp32 gradients as 64-bit integers of 2^-40: adding integers is associative, so that neither the number
// of ranks nor their shares nor the order of additions can change a bit (training-semantics 1). One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace evenkeel::trainer {

class FixedPointSums {
 public:
  static constexpr double kScale = 1099511627776.0;  // 2^40

  void clear(std::size_t elements);
  // Adds one unit's gradient, element by element. What is not finite, or too large for the scale, is remembered.
  void add(std::span<const float> gradients);
  // The sums as floats, each rounded once.
  void to_floats(std::span<float> gradients) const;

  std::span<std::int64_t> values() { return values_; }
  // Over `ranks` ranks the sums may not fit, or a gradient was not finite: there is no right sum.
  bool overflowed(int ranks) const;

 private:
  std::vector<std::int64_t> values_;
  bool bad_ = false;
};

}  // namespace evenkeel::trainer
