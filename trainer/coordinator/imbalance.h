// How unequal ranks are, from their own work alone (never from step time or samples/s, which synchronous
// ranks share). Used by the diagnosis, the report and the metrics. Pure.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace evenkeel::trainer {

// Of one number per rank. All 0 for an empty list or a mean of 0.
double imbalance_ratio(std::span<const double> times);           // max / mean - 1
double idle_ratio(std::span<const double> times);                // 1 - mean / max
double coefficient_of_variation(std::span<const double> times);  // population deviation / mean
double gini(std::span<const double> times);

double mean(std::span<const double> values);
// Linear between the two neighbours, as PromQL's quantile(). REQUIRES: not empty, 0 <= q <= 1.
double quantile(std::span<const double> values, double q);
// The lower of the two middle ones. REQUIRES: not empty.
double lower_median(std::span<const double> values);

// -1..1; absent: fewer than three pairs, or one of the two is always the same. REQUIRES: as many of both.
std::optional<double> correlation(std::span<const double> x, std::span<const double> y);

// Speed of each rank against the reference: samples per second of own work at the first quartile of time per
// sample, so that one fast rank does not make the others slow, and the slow one of two is found. Absent: no
// samples, or no work.
std::vector<std::optional<double>> relative_performance(std::span<const double> samples,
                                                        std::span<const double> times);

// Own work by step and rank: times[step][rank], all steps of one length.
using StepTimes = std::vector<std::vector<double>>;

// What-if analysis in its data-parallel form.
struct WhatIf {
  double slowdown = 1;                // mean over steps of the slowest, over the mean of all
  std::vector<double> rank_slowdown;  // with only that rank as measured, the others at the mean of the step
  double worst_share = 0;  // M_W: part of the loss that ends when the worst 3 % (>= 1) ran at the step's mean
  std::vector<double> last_share;  // by rank: in which part of the steps it arrived last
};
// REQUIRES: at least one step and one rank.
WhatIf what_if(const StepTimes& times);

}  // namespace evenkeel::trainer
