// The identity of a step's time and the waterfall from N ranks to the speed they reach:
//   T = mean c + mean w + (max t - mean t) + (T - max t),   t = c + w
// It holds in every step by definition; terms are signed and are means over the same steps. Used by the
// diagnosis. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "contract/report.h"

namespace evenkeel::trainer {

// One rank in one step: samples, compute (forward, backward, optimizer) and own waiting for data (input,
// copy). A rank that takes no part in the step is not present and counts nowhere; one that takes part with an
// empty share is present.
struct RankWork {
  double samples = 0;
  double compute_seconds = 0;
  double input_seconds = 0;
  bool present = true;
  double optimizer_seconds = 0;  // of compute_seconds, where it is known
  double work = 0;               // bytes, pixels or tokens; 0: not counted
  double throttled_share = 0;    // of the recent periods of its CPU quota, in which that stopped it
  // Of own_seconds(), when it was ready to run and had no core; and those of them in reductions.
  double no_core_seconds = 0, no_core_reducing_seconds = 0;
  double own_seconds() const { return compute_seconds + input_seconds; }
};
inline RankWork away() {
  RankWork rank;
  rank.present = false;
  return rank;
}

struct StepWork {
  double step_seconds = 0;             // T, by the ranks' own timers
  std::optional<double> wall_seconds;  // the same by the coordinator's clock, where it could be seen
  std::vector<RankWork> ranks;         // by rank
  std::int64_t step = 0;               // its number
};

// The ranks that take part, ascending.
std::vector<std::size_t> present_ranks(const StepWork& step);

enum class BaselineSource { kMeasured, kFitted };

// One rank alone on the reference batch.
struct Baseline {
  double samples = 0, compute_seconds = 0, input_seconds = 0, step_seconds = 0;
  BaselineSource source = BaselineSource::kMeasured;
};

// Seconds of a mean step; their sum is step_seconds.
struct Waterfall {
  double step_seconds = 0;
  std::optional<double> useful, fixed;  // absent without a baseline: then only their sum is known
  double useful_and_fixed = 0;
  // Compute that a step costs whatever its samples, on the median rank: a of t = a + b*n through the baseline and
  // the present steps. Absent where both have about as many samples.
  std::optional<double> once;
  double capacity = 0;  // hardware slower than the median
  double wait = 0;      // idle for the slowest
  double input = 0;
  double rest = 0;  // exposed communication, and what no timer holds
  // What the coordinator's clock saw more than the ranks' timers. Printed, never spread over the terms.
  std::optional<double> residue;

  double ranks = 0;  // N: those that take part
  // Of N ranks: speedup + the four losses = N. Absent without a baseline.
  struct Speedup {
    double reached = 0, fixed = 0, input = 0, imbalance = 0, communication = 0;
    double sum() const { return reached + fixed + input + imbalance + communication; }
  };
  std::optional<Speedup> speedup;
};

// REQUIRES: at least one step; the same ranks, at least one, take part in each.
Waterfall make_waterfall(std::span<const StepWork> steps, const std::optional<Baseline>& baseline);

// Shares of the step's time; with compute (the remainder) they add up to 1.
contract::Losses losses_of(const Waterfall& waterfall);

}  // namespace evenkeel::trainer
