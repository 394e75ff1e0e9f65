// A job's report in the form that `explain` shows: read from any of the files that hold one, with the terms
// of the waterfall in the order of the story. Text and page are made from it. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "contract/report.h"

namespace evenkeel::trainer {

// Of a coordinator's report, of what `local --report` writes, or of a TrainingJob with a status.
// kInvalidInput when it is none of them, or damaged.
base::Result<contract::JobReport> report_of(const base::Json& json);

// One bar. What it is worth is told as a number of ranks where there is a baseline, else as a share of a
// step.
struct ExplainedTerm {
  std::string key;                // useful | fixed | capacity | wait | input | rest: a colour
  std::string label;              // "waiting for the slowest"
  std::optional<double> seconds;  // of a mean step
  double share = 0;               // of a mean step
  std::optional<double> ranks;
};

struct Explained {
  std::vector<ExplainedTerm> terms;  // what is reached first
  bool in_ranks = false;             // all terms have ranks; they add up to the job's
  double ranks = 0;
  std::string baseline;  // a sentence
};
Explained explained(const contract::JobReport& report);

// "3.31", "-0.02"; a number that is none is "?".
std::string fixed_digits(double value, int digits);
std::string percent_text(double share, int digits = 0);
const char* state_text(contract::RemedyState state);

}  // namespace evenkeel::trainer
