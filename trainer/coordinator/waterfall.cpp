#include "trainer/coordinator/waterfall.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "trainer/coordinator/imbalance.h"

namespace evenkeel::trainer {
namespace {

// Means over the window's steps.
struct Means {
  double step = 0, slowest = 0, compute = 0, input = 0, samples = 0;
  std::vector<double> rank_compute, rank_samples;
};

Means means_of(std::span<const StepWork> steps) {
  const std::vector<std::size_t> ranks = present_ranks(steps.front());
  const double weight = 1.0 / static_cast<double>(steps.size());
  Means m;
  m.rank_compute.assign(ranks.size(), 0);
  m.rank_samples.assign(ranks.size(), 0);
  for (const StepWork& step : steps) {
    double slowest = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const RankWork& work = step.ranks[ranks[i]];
      slowest = std::max(slowest, work.own_seconds());
      m.rank_compute[i] += work.compute_seconds * weight;
      m.rank_samples[i] += work.samples * weight;
      m.input += work.input_seconds * weight / static_cast<double>(ranks.size());
    }
    m.step += step.step_seconds * weight;
    m.slowest += slowest * weight;
  }
  m.compute = mean(m.rank_compute);
  m.samples = mean(m.rank_samples);
  return m;
}

// kappa: seconds of compute for one sample on the median rank.
double median_cost(const Means& m) {
  std::vector<double> cost;
  for (std::size_t r = 0; r < m.rank_compute.size(); ++r) {
    if (m.rank_samples[r] > 0) cost.push_back(m.rank_compute[r] / m.rank_samples[r]);
  }
  return cost.empty() ? 0 : lower_median(cost);
}

std::optional<double> residue_of(std::span<const StepWork> steps) {
  double difference = 0, seen = 0;
  for (const StepWork& step : steps) {
    if (!step.wall_seconds) continue;
    difference += *step.wall_seconds - step.step_seconds;
    ++seen;
  }
  if (seen == 0) return std::nullopt;
  return difference / seen;
}

// A baseline of other size than the ranks' shares is a second point of the line.
std::optional<double> once_of(double samples, double compute, const Baseline& baseline) {
  constexpr double kFarEnough = 0.1;
  const double difference = baseline.samples - samples;
  if (std::abs(difference) <= kFarEnough * samples) return std::nullopt;
  const double each = (baseline.compute_seconds - compute) / difference;
  return std::clamp(compute - each * samples, 0.0, compute);
}

}  // namespace

std::vector<std::size_t> present_ranks(const StepWork& step) {
  std::vector<std::size_t> ranks;
  for (std::size_t r = 0; r < step.ranks.size(); ++r) {
    if (step.ranks[r].present) ranks.push_back(r);
  }
  return ranks;
}

Waterfall make_waterfall(std::span<const StepWork> steps, const std::optional<Baseline>& baseline) {
  assert(!steps.empty() && !present_ranks(steps.front()).empty());
  const Means m = means_of(steps);
  Waterfall w;
  w.ranks = static_cast<double>(m.rank_samples.size());
  w.step_seconds = m.step;
  w.useful_and_fixed = m.samples * median_cost(m);
  w.capacity = m.compute - w.useful_and_fixed;
  w.wait = m.slowest - (m.compute + m.input);
  w.input = m.input;
  w.rest = m.step - m.slowest;
  w.residue = residue_of(steps);
  if (!baseline || baseline->samples <= 0 || baseline->step_seconds <= 0 || m.step <= 0) return w;

  w.useful = m.samples * baseline->compute_seconds / baseline->samples;
  w.fixed = w.useful_and_fixed - *w.useful;
  w.once = once_of(m.samples, w.useful_and_fixed, *baseline);
  const double ranks = w.ranks;
  const double q = m.samples / baseline->samples;
  const double rest1 = baseline->step_seconds - baseline->compute_seconds - baseline->input_seconds;
  Waterfall::Speedup s;
  s.reached = ranks * m.samples / m.step / (baseline->samples / baseline->step_seconds);
  s.fixed = ranks / m.step * *w.fixed;
  s.input = ranks / m.step * (m.input - q * baseline->input_seconds);
  s.imbalance = ranks / m.step * (w.capacity + w.wait);
  s.communication = ranks / m.step * (w.rest - q * rest1);
  w.speedup = s;
  return w;
}

contract::Losses losses_of(const Waterfall& waterfall) {
  contract::Losses losses;
  const double total = waterfall.step_seconds;
  if (total <= 0) return losses;
  losses.input_wait = waterfall.input / total;
  losses.imbalance = (waterfall.capacity + waterfall.wait) / total;
  losses.communication = waterfall.rest / total;
  if (waterfall.fixed) losses.fixed_cost = *waterfall.fixed / total;
  losses.compute =
      1 - *losses.input_wait - *losses.imbalance - *losses.communication - losses.fixed_cost.value_or(0);
  return losses;
}

}  // namespace evenkeel::trainer
