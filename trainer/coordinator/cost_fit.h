// t = a + b * n from steps in which a rank had different numbers of samples (the last batch of an epoch, new
// shares, a kept batch over fewer ranks): what a step costs whatever its size, and what a sample adds. Used
// where no baseline was measured. Also the noise scale, which says what a larger batch is worth. Pure; not
// thread safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "trainer/coordinator/waterfall.h"

namespace evenkeel::trainer {

struct StepCost {
  double fixed_seconds = 0;       // a
  double seconds_per_sample = 0;  // b
};

class CostFit {
 public:
  // A committed step, not one that evaluated or saved.
  void add(const StepWork& step);
  // A new process at this rank, on other hardware maybe.
  void reset_rank(int rank);
  // Of the median rank. Absent: the sizes differ by less than a quarter, the slope is not known within a
  // tenth, or fewer than half of the ranks say so.
  std::optional<StepCost> fit() const;
  // As a baseline for steps of `samples` a rank: one rank that has no fixed cost, no waits and no network.
  std::optional<Baseline> baseline(double samples) const;

 private:
  // Of the steps with one number of samples.
  struct Sizes {
    double steps = 0, mean = 0, squares = 0;  // squares of the differences from the mean
  };
  std::optional<StepCost> fit_of(const std::map<std::int64_t, Sizes>& sizes) const;

  std::vector<std::map<std::int64_t, Sizes>> ranks_;
  std::vector<std::size_t> present_;
  std::int64_t seen_ = 0;
};

// Of gradients of unequal batches: L = mean of the ranks' abs(g_i)^2, Q = abs(g)^2 of their weighted mean.
struct NoiseScale {
  double trace = 0;                                          // tr: variance of the gradient of one sample
  double gradient_squared = 0;                               // G2: of the true gradient
  double batch() const { return trace / gradient_squared; }  // above it, a larger batch saves few steps
};
// Absent: fewer than two ranks with samples, or noise so large that G2 is not positive.
std::optional<NoiseScale> noise_scale(std::span<const double> samples, double mean_rank_norm_squared,
                                      double norm_squared);

// The noise scale from many steps: of one step it is mostly noise itself, so trace and G2 are averaged, each for
// itself (both are unbiased, their quotient is not), over the last measurements.
class NoiseMeter {
 public:
  // One step. By rank: samples, and the squared norm of the rank's own mean gradient; 0 samples: took no part.
  void add(std::span<const double> samples, std::span<const double> norms_squared, double norm_squared);
  // Absent: too few measurements, or noise alone.
  std::optional<NoiseScale> scale() const;

 private:
  std::int64_t measured_ = 0;
  double trace_ = 0, gradient_squared_ = 0;
};

}  // namespace evenkeel::trainer
