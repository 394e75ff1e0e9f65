#include "trainer/coordinator/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "trainer/coordinator/imbalance.h"
#include "trainer/coordinator/words.h"

namespace evenkeel::trainer {
namespace {

constexpr char kMeasuring[] = "Measuring";
constexpr char kStraggler[] = "Straggler";

std::vector<RankFinding> rank_findings(const std::vector<StepWork>& steps) {
  const std::size_t ranks = steps.front().ranks.size();
  std::vector<double> samples(ranks, 0), busy(ranks, 0);
  for (const StepWork& step : steps) {
    for (std::size_t r = 0; r < ranks; ++r) {
      samples[r] += step.ranks[r].samples;
      busy[r] += step.ranks[r].own_seconds();
    }
  }
  const double total = std::accumulate(samples.begin(), samples.end(), 0.0);
  const double count = static_cast<double>(steps.size());
  const auto relative = relative_performance(samples, busy);
  std::vector<RankFinding> findings(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    findings[r] = {samples[r] / count, busy[r] / count, total > 0 ? samples[r] / total : 0, relative[r]};
  }
  return findings;
}

// Own work by rank, added up over consecutive steps that last `block_seconds` together.
StepTimes blocks_of(const std::vector<StepWork>& steps, double block_seconds) {
  StepTimes blocks;
  double lasted = block_seconds;  // the first step opens the first block
  for (const StepWork& step : steps) {
    if (lasted >= block_seconds) {
      blocks.emplace_back(step.ranks.size(), 0.0);
      lasted = 0;
    }
    for (std::size_t r = 0; r < step.ranks.size(); ++r) blocks.back()[r] += step.ranks[r].own_seconds();
    lasted += step.step_seconds;
  }
  if (blocks.size() > 1 && lasted < block_seconds)
    blocks.pop_back();  // an unfinished block would weigh too much
  return blocks;
}

std::optional<int> slowest_rank(const std::vector<RankFinding>& ranks) {
  std::optional<int> slowest;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (!ranks[r].relative_performance) continue;
    if (!slowest ||
        *ranks[r].relative_performance < *ranks[static_cast<std::size_t>(*slowest)].relative_performance) {
      slowest = static_cast<int>(r);
    }
  }
  return slowest;
}

// Is one rank behind most of the waiting, or do several take turns?
bool one_rank_is_behind_it(const StepTimes& blocks, std::size_t rank, const StragglerRule& rule) {
  const std::size_t ranks = blocks.front().size();
  const WhatIf what = what_if(blocks);
  const auto worst = std::max_element(what.rank_slowdown.begin(), what.rank_slowdown.end());
  const bool is_worst = what.rank_slowdown[rank] >= *worst;
  const double needed = ranks <= 3 ? rule.worst_share_few_ranks : rule.worst_share_at_least;
  if (is_worst && what.worst_share >= needed) return true;
  return ranks > 3 && what.last_share[rank] > std::max(3.0 / static_cast<double>(ranks), 0.5);
}

std::string ranks_below(const std::vector<RankFinding>& ranks, double threshold) {
  std::string text;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].relative_performance.value_or(1) >= threshold) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(r);
  }
  return text;
}

std::string no_verdict(const DiagnosisWindow& window) {
  return "no window yet: " + std::to_string(window.size()) + " of at least " +
         std::to_string(window.limits().min_steps) + " steps and " + two_digits(window.seconds()) + " of " +
         two_digits(window.limits().min_seconds) + " s after the first " +
         std::to_string(window.limits().warmup_steps) + " steps";
}

contract::Diagnosis verdict_of(const std::vector<StepWork>& steps, const Findings& found,
                               const StragglerRule& rule) {
  contract::Diagnosis diagnosis{kMeasuring, "", losses_of(*found.waterfall)};
  const double imbalance = found.balance.imbalance_ratio.value_or(0);
  const int slowest = found.balance.slowest_rank.value_or(-1);
  const auto& ranks = found.ranks;
  if (ranks.size() < 2 || slowest < 0) {
    diagnosis.message = "one rank: there is nothing to compare";
    return diagnosis;
  }
  const double relative = *ranks[static_cast<std::size_t>(slowest)].relative_performance;
  const bool costs =
      imbalance > rule.imbalance_above && diagnosis.losses.imbalance.value_or(0) >= rule.loss_at_least;
  if (relative < rule.relative_below && costs) {
    if (one_rank_is_behind_it(blocks_of(steps, rule.block_seconds), static_cast<std::size_t>(slowest),
                              rule)) {
      diagnosis.verdict = kStraggler;
      diagnosis.message =
          "rank " + std::to_string(slowest) + " runs at " + two_digits(relative) + " of the others; " +
          percent(found.waterfall->wait / found.waterfall->step_seconds) + " of each step is waiting for it";
    } else {
      diagnosis.message = "below " + two_digits(rule.relative_below) + " of the others: rank " +
                          ranks_below(ranks, rule.relative_below) + "; no single rank is behind the waiting";
    }
  } else {
    diagnosis.message = "no straggler: rank " + std::to_string(slowest) + " is the slowest, at " +
                        two_digits(relative) + " of the others; imbalance costs " +
                        percent(diagnosis.losses.imbalance.value_or(0)) + " of each step";
  }
  return diagnosis;
}

}  // namespace

Findings diagnose(const DiagnosisWindow& window, const StragglerRule& rule,
                  const std::optional<Baseline>& baseline) {
  Findings found;
  if (!window.ready()) {
    found.diagnosis = {kMeasuring, no_verdict(window), {}};
    return found;
  }
  const std::vector<StepWork> steps = window.steps();
  found.ranks = rank_findings(steps);
  found.waterfall = make_waterfall(steps, baseline);
  std::vector<double> busy;
  for (const RankFinding& rank : found.ranks) busy.push_back(rank.busy_seconds);
  found.balance.imbalance_ratio = imbalance_ratio(busy);
  found.balance.slowest_rank = slowest_rank(found.ranks);
  if (found.waterfall->speedup) {
    found.balance.scaling_efficiency =
        found.waterfall->speedup->reached / static_cast<double>(found.ranks.size());
  }
  found.diagnosis = verdict_of(steps, found, rule);
  if (!baseline) found.diagnosis.message += "; no baseline: the fixed cost is not told from useful work";
  return found;
}

}  // namespace evenkeel::trainer
