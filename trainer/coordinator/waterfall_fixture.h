// Steps in milliseconds, for tests of the diagnosis and of the remedies. Tests only.
#pragma once

#include <vector>

#include "trainer/coordinator/waterfall.h"

namespace evenkeel::trainer {

// One step of `total_ms`: samples `n` and compute by rank, the same input wait on all.
inline StepWork step_of(double total_ms, const std::vector<double>& n, const std::vector<double>& compute_ms,
                        double input_ms) {
  StepWork work;
  for (std::size_t r = 0; r < n.size(); ++r) {
    RankWork rank;
    rank.samples = n[r];
    rank.compute_seconds = compute_ms[r] / 1000;
    rank.input_seconds = input_ms / 1000;
    work.ranks.push_back(rank);
  }
  work.step_seconds = total_ms / 1000;
  return work;
}

}  // namespace evenkeel::trainer
