#include "trainer/coordinator/imbalance.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace evenkeel::trainer {
namespace {

double largest(std::span<const double> values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

std::vector<double> sorted(std::span<const double> values) {
  std::vector<double> copy(values.begin(), values.end());
  std::sort(copy.begin(), copy.end());
  return copy;
}

// Ranks by what they alone cost, worst first; ties to the lower rank.
std::vector<std::size_t> worst_first(const std::vector<double>& slowdown) {
  std::vector<std::size_t> order(slowdown.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return slowdown[a] > slowdown[b]; });
  return order;
}

}  // namespace

double mean(std::span<const double> values) {
  return values.empty()
             ? 0
             : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double imbalance_ratio(std::span<const double> times) {
  const double average = mean(times);
  return average > 0 ? largest(times) / average - 1 : 0;
}

double idle_ratio(std::span<const double> times) {
  const double longest = largest(times);
  return longest > 0 ? 1 - mean(times) / longest : 0;
}

double coefficient_of_variation(std::span<const double> times) {
  const double average = mean(times);
  if (average <= 0) return 0;
  double squares = 0;
  for (const double t : times) squares += (t - average) * (t - average);
  return std::sqrt(squares / static_cast<double>(times.size())) / average;
}

double gini(std::span<const double> times) {
  const double average = mean(times);
  if (average <= 0) return 0;
  double differences = 0;
  for (const double a : times) {
    for (const double b : times) differences += std::abs(a - b);
  }
  const double n = static_cast<double>(times.size());
  return differences / (2 * n * n * average);
}

double quantile(std::span<const double> values, double q) {
  assert(!values.empty() && q >= 0 && q <= 1);
  const std::vector<double> order = sorted(values);
  const double at = q * static_cast<double>(order.size() - 1);
  const std::size_t low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, order.size() - 1);
  return order[low] + (at - static_cast<double>(low)) * (order[high] - order[low]);
}

double lower_median(std::span<const double> values) {
  assert(!values.empty());
  return sorted(values)[(values.size() - 1) / 2];
}

std::optional<double> correlation(std::span<const double> xs, std::span<const double> ys) {
  assert(xs.size() == ys.size());
  const double n = static_cast<double>(xs.size()), mean_x = mean(xs), mean_y = mean(ys);
  double xx = 0, yy = 0, xy = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const double x = xs[i] - mean_x, y = ys[i] - mean_y;
    xx += x * x;
    yy += y * y;
    xy += x * y;
  }
  constexpr double kSame = 1e-12;  // of the size, squared
  if (n < 3 || xx <= kSame * n * mean_x * mean_x || yy <= kSame * n * mean_y * mean_y) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

std::vector<std::optional<double>> relative_performance(std::span<const double> samples,
                                                        std::span<const double> times) {
  assert(samples.size() == times.size());
  std::vector<double> per_sample;
  for (std::size_t r = 0; r < times.size(); ++r) {
    if (samples[r] > 0 && times[r] > 0) per_sample.push_back(times[r] / samples[r]);
  }
  std::vector<std::optional<double>> relative(times.size());
  if (per_sample.empty()) return relative;
  const double reference = quantile(per_sample, 0.25);
  for (std::size_t r = 0; r < times.size(); ++r) {
    if (samples[r] > 0 && times[r] > 0) relative[r] = reference * samples[r] / times[r];
  }
  return relative;
}

WhatIf what_if(const StepTimes& times) {
  assert(!times.empty() && !times.front().empty());
  const std::size_t ranks = times.front().size();
  WhatIf result;
  std::vector<double> alone(ranks, 0), last(ranks, 0);
  double slowest = 0, average = 0;
  for (const auto& step : times) {
    const double step_mean = mean(step);
    const double longest = largest(step);
    const double together =
        static_cast<double>(std::count(step.begin(), step.end(), longest));  // ties share the place
    slowest += longest;
    average += step_mean;
    for (std::size_t r = 0; r < ranks; ++r) {
      if (step[r] == longest) last[r] += 1 / together;
      alone[r] += std::max(step[r], step_mean);
    }
  }
  for (double& share : last) share /= static_cast<double>(times.size());
  result.last_share = std::move(last);
  result.rank_slowdown.assign(ranks, 1);
  if (average <= 0) return result;
  result.slowdown = slowest / average;
  for (std::size_t r = 0; r < ranks; ++r) result.rank_slowdown[r] = alone[r] / average;
  if (slowest <= average) return result;

  const std::size_t worst = std::max<std::size_t>(1, ranks * 3 / 100);
  const std::vector<std::size_t> order = worst_first(result.rank_slowdown);
  double repaired = 0;
  for (const auto& step : times) {
    std::vector<double> what(step);
    for (std::size_t i = 0; i < worst; ++i) what[order[i]] = mean(step);
    repaired += largest(what);
  }
  result.worst_share = (slowest - repaired) / (slowest - average);
  return result;
}

}  // namespace evenkeel::trainer
