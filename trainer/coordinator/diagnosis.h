// Why N ranks are not N times faster: measured steps and facts in, verdict, sentence and numbers out. Called
// for each report. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "contract/report.h"
#include "trainer/coordinator/diagnosis_window.h"
#include "trainer/coordinator/rules.h"
#include "trainer/coordinator/rules_facts.h"
#include "trainer/coordinator/waterfall.h"

namespace evenkeel::trainer {

// Everything that a verdict is made of. All but the window may stay empty.
struct DiagnosisInput {
  StragglerRule limits;
  std::optional<Baseline> baseline;  // its source is said in the message
  JobFacts job;
  std::vector<RankFacts> ranks;  // by rank
  EpochFacts epoch;
  CheckFacts checks;
};

struct RankFinding {
  double samples_per_step = 0;
  double busy_seconds = 0;  // mean own work of a step
  double share = 0;         // of the samples in the window
  std::optional<double> relative_performance;
  bool present = true;
};

struct Findings {
  contract::Diagnosis diagnosis;  // without remedies: see remedies.h
  contract::Balance balance;
  std::vector<RankFinding> ranks;      // by rank; empty: no window yet
  std::optional<Waterfall> waterfall;  // as above
  std::optional<Baseline> baseline;    // that the waterfall was made with
  std::vector<Fired> fired;            // all rules that were asked and fired, the verdict's first: for events
};

Findings diagnose(const DiagnosisWindow& window, const DiagnosisInput& input);

// The same of a job of which nothing else is known.
Findings diagnose(const DiagnosisWindow& window, const StragglerRule& limits,
                  const std::optional<Baseline>& baseline);

// For the report.
contract::WaterfallReport waterfall_report(const Waterfall& waterfall,
                                           const std::optional<Baseline>& baseline);

}  // namespace evenkeel::trainer
