// Why N ranks are not N times faster: measured steps in, verdict and numbers out. This version names a
// Straggler; every other cause is Measuring, with the numbers beside it. Called for each report. Pure.
#pragma once

#include <optional>
#include <vector>

#include "contract/report.h"
#include "trainer/coordinator/diagnosis_window.h"
#include "trainer/coordinator/waterfall.h"

namespace evenkeel::trainer {

// Thresholds of the Straggler rule. Starting values, to be moved only together with the confusion matrix.
struct StragglerRule {
  double relative_below = 0.75;        // spec.balance.stragglerThreshold
  double imbalance_above = 0.05;       // max / mean - 1 of own work
  double loss_at_least = 0.10;         // of the step's time; less is not worth a name
  double worst_share_at_least = 0.5;   // M_W
  double worst_share_few_ranks = 0.8;  // the same for up to 3 ranks, where one is a large part of all
  // Own work is added up over blocks of this length before the what-if, so that a rank that is throttled now
  // and then counts by what it loses and not by how often: twice the period of the CPU quota.
  double block_seconds = 0.2;
};

struct RankFinding {
  double samples_per_step = 0;
  double busy_seconds = 0;  // mean own work of a step
  double share = 0;         // of the samples in the window
  std::optional<double> relative_performance;
};

struct Findings {
  contract::Diagnosis diagnosis;
  contract::Balance balance;
  std::vector<RankFinding> ranks;      // empty: no window yet
  std::optional<Waterfall> waterfall;  // as above
};

Findings diagnose(const DiagnosisWindow& window, const StragglerRule& rule,
                  const std::optional<Baseline>& baseline);

}  // namespace evenkeel::trainer
