// What the rules look at, worked out once from the steps of a window. Pure.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "trainer/coordinator/imbalance.h"
#include "trainer/coordinator/rules_facts.h"
#include "trainer/coordinator/waterfall.h"

namespace evenkeel::trainer {

// Correlation of own work and work units from which on units count and not samples.
inline constexpr double kWorkExplains = 0.7;

// Vectors have one entry for each rank that takes part, in the order of `present`.
struct Signals {
  std::vector<std::size_t> present;
  std::vector<double> samples, work, own, input;  // of a mean step; work 0: not counted
  std::vector<std::optional<double>> relative;    // speed against the first quartile
  double step_seconds = 0;
  double compute_seconds = 0, optimizer_seconds = 0;  // means over ranks
  double imbalance = 0;                               // mean over blocks of max / mean - 1
  WhatIf what;                                        // over blocks
  StepTimes blocks;
  double input_share = 0;                  // f_in
  double net_seconds = 0;                  // collective time of the last arriver
  double net_share = 0;                    // f_net
  std::optional<double> ring_seconds;      // what the ring would need at the measured speed
  std::optional<double> rho;               // net over ring
  std::optional<double> work_correlation;  // of own work and work units, over ranks and steps
  // Shares of the step's time when a rank was ready to run and had no core, in all of its work and in reductions.
  std::vector<double> no_core, no_core_reducing;
  // Mean over steps of the slowest less the mean of all: as measured, and if nobody had ever lacked a core.
  double wait_seconds = 0, wait_with_cores_seconds = 0;

  std::size_t ranks() const { return present.size(); }
  // Own work follows the work units: what a rank has to do is not its number of samples.
  bool work_explains() const { return work_correlation.value_or(0) > kWorkExplains; }
  double mean_samples() const { return mean(samples); }
  std::size_t slowest() const;  // index of the least relative speed
  double slowest_relative() const;
};

// REQUIRES: at least one step; the same ranks, at least one, in each.
Signals signals_of(std::span<const StepWork> steps, const JobFacts& job, double block_seconds);

// Seconds of a ring all-reduce over `ranks`. Absent when bytes or speed are not known.
std::optional<double> ring_seconds(double ranks, const JobFacts& job);

}  // namespace evenkeel::trainer
