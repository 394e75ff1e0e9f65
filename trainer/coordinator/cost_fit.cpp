#include "trainer/coordinator/cost_fit.h"

#include <algorithm>
#include <cmath>

#include "trainer/coordinator/imbalance.h"

namespace evenkeel::trainer {
namespace {

constexpr std::int64_t kWarmupSteps = 10;
constexpr std::size_t kMaxSizes = 64;  // of one rank; more say nothing new
constexpr double kSpread = 1.25;       // largest over smallest size
constexpr double kMinSteps = 20;
constexpr double kMinStepsOfASize = 2;
constexpr double kSlopeWithin = 0.1;  // standard error of the slope over the slope

}  // namespace

void CostFit::add(const StepWork& step) {
  if (++seen_ <= kWarmupSteps) return;
  present_ = present_ranks(step);
  if (ranks_.size() < step.ranks.size()) ranks_.resize(step.ranks.size());
  for (const std::size_t r : present_) {
    const auto n = static_cast<std::int64_t>(step.ranks[r].samples);
    if (n <= 0) continue;
    auto& sizes = ranks_[r];
    if (sizes.size() >= kMaxSizes && !sizes.contains(n)) continue;
    Sizes& size = sizes[n];
    ++size.steps;
    const double before = step.ranks[r].compute_seconds - size.mean;
    size.mean += before / size.steps;
    size.squares += before * (step.ranks[r].compute_seconds - size.mean);
  }
}

void CostFit::reset_rank(int rank) {
  if (static_cast<std::size_t>(rank) < ranks_.size()) ranks_[static_cast<std::size_t>(rank)].clear();
}

// Least squares over all steps, with the error of the slope from the spread within and between the sizes.
std::optional<StepCost> CostFit::fit_of(const std::map<std::int64_t, Sizes>& sizes) const {
  double steps = 0, n = 0, t = 0, smallest = 0, largest = 0;
  for (const auto& [samples, size] : sizes) {
    if (size.steps < kMinStepsOfASize) continue;
    steps += size.steps;
    n += size.steps * static_cast<double>(samples);
    t += size.steps * size.mean;
    if (smallest <= 0) smallest = static_cast<double>(samples);
    largest = static_cast<double>(samples);
  }
  if (steps < kMinSteps || largest < kSpread * smallest) return std::nullopt;
  n /= steps;
  t /= steps;
  double nn = 0, nt = 0;
  for (const auto& [samples, size] : sizes) {
    if (size.steps < kMinStepsOfASize) continue;
    const double dn = static_cast<double>(samples) - n;
    nn += size.steps * dn * dn;
    nt += size.steps * dn * (size.mean - t);
  }
  StepCost cost;
  cost.seconds_per_sample = nt / nn;
  cost.fixed_seconds = t - cost.seconds_per_sample * n;
  if (cost.seconds_per_sample <= 0) return std::nullopt;
  double errors = 0;
  for (const auto& [samples, size] : sizes) {
    if (size.steps < kMinStepsOfASize) continue;
    const double off =
        size.mean - cost.fixed_seconds - cost.seconds_per_sample * static_cast<double>(samples);
    errors += size.squares + size.steps * off * off;
  }
  const double slope_error = std::sqrt(errors / (steps - 2) / nn);
  if (slope_error > kSlopeWithin * cost.seconds_per_sample) return std::nullopt;
  cost.fixed_seconds = std::max(0.0, cost.fixed_seconds);
  return cost;
}

std::optional<StepCost> CostFit::fit() const {
  std::vector<double> fixed, slopes;
  for (const std::size_t r : present_) {
    const auto cost = fit_of(ranks_[r]);
    if (!cost) continue;
    fixed.push_back(cost->fixed_seconds);
    slopes.push_back(cost->seconds_per_sample);
  }
  if (slopes.empty() || 2 * slopes.size() < present_.size()) return std::nullopt;
  return StepCost{lower_median(fixed), lower_median(slopes)};
}

std::optional<Baseline> CostFit::baseline(double samples) const {
  const auto cost = fit();
  if (!cost || samples <= 0) return std::nullopt;
  const double compute = cost->seconds_per_sample * samples;
  return Baseline{samples, compute, 0, compute, BaselineSource::kFitted};
}

namespace {

// Either may be negative: they are estimates.
std::optional<NoiseScale> noise_terms(std::span<const double> samples, double mean_rank_norm_squared,
                                      double norm_squared) {
  double inverse = 0, sum = 0, ranks = 0;
  for (const double n : samples) {
    if (n <= 0) continue;
    inverse += 1 / n;
    sum += n;
    ++ranks;
  }
  if (ranks < 2) return std::nullopt;
  const double h = inverse / ranks;
  NoiseScale scale;
  scale.trace = (mean_rank_norm_squared - norm_squared) / (h - 1 / sum);
  scale.gradient_squared = (h * norm_squared - mean_rank_norm_squared / sum) / (h - 1 / sum);
  return scale;
}

}  // namespace

std::optional<NoiseScale> noise_scale(std::span<const double> samples, double mean_rank_norm_squared,
                                      double norm_squared) {
  const auto scale = noise_terms(samples, mean_rank_norm_squared, norm_squared);
  if (!scale || !(scale->gradient_squared > 0) || !(scale->trace > 0)) return std::nullopt;
  return scale;
}

void NoiseMeter::add(std::span<const double> samples, std::span<const double> norms_squared,
                     double norm_squared) {
  double sum = 0, ranks = 0;
  for (std::size_t r = 0; r < samples.size(); ++r) {
    if (samples[r] <= 0) continue;
    sum += norms_squared[r];
    ++ranks;
  }
  const auto terms = ranks > 0 ? noise_terms(samples, sum / ranks, norm_squared) : std::nullopt;
  if (!terms || !std::isfinite(terms->trace) || !std::isfinite(terms->gradient_squared)) return;
  constexpr double kRemembered = 20;
  const double weight = 1 / std::min(kRemembered, static_cast<double>(++measured_));
  trace_ += weight * (terms->trace - trace_);
  gradient_squared_ += weight * (terms->gradient_squared - gradient_squared_);
}

std::optional<NoiseScale> NoiseMeter::scale() const {
  constexpr std::int64_t kLeastMeasured = 5;
  // Samples that are all alike differ by rounding alone: that is no data from which anything could be said.
  constexpr double kRounding = 1e-3;
  if (measured_ < kLeastMeasured || !(gradient_squared_ > 0) || !(trace_ > kRounding * gradient_squared_))
    return std::nullopt;
  return NoiseScale{trace_, gradient_squared_};
}

}  // namespace evenkeel::trainer
