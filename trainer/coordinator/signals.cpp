#include "trainer/coordinator/signals.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace evenkeel::trainer {
namespace {

// Own work by rank, added up over consecutive steps that last `block_seconds` together.
StepTimes blocks_of(std::span<const StepWork> steps, const std::vector<std::size_t>& present,
                    double block_seconds) {
  StepTimes blocks;
  double lasted = block_seconds;  // the first step opens the first block
  for (const StepWork& step : steps) {
    if (lasted >= block_seconds) {
      blocks.emplace_back(present.size(), 0.0);
      lasted = 0;
    }
    for (std::size_t i = 0; i < present.size(); ++i) blocks.back()[i] += step.ranks[present[i]].own_seconds();
    lasted += step.step_seconds;
  }
  if (blocks.size() > 1 && lasted < block_seconds)
    blocks.pop_back();  // an unfinished block would weigh too much
  return blocks;
}

std::optional<double> correlation_of(std::span<const StepWork> steps, const std::vector<std::size_t>& present) {
  std::vector<double> work, own;
  for (const StepWork& step : steps) {
    for (const std::size_t r : present) {
      const RankWork& rank = step.ranks[r];
      if (rank.work <= 0 && rank.samples > 0) return std::nullopt;  // not counted
      work.push_back(rank.work);
      own.push_back(rank.own_seconds());
    }
  }
  return correlation(work, own);
}

}  // namespace

std::size_t Signals::slowest() const {
  std::size_t slowest = 0;
  for (std::size_t i = 1; i < relative.size(); ++i) {
    if (relative[i].value_or(1e9) < relative[slowest].value_or(1e9)) slowest = i;
  }
  return slowest;
}

double Signals::slowest_relative() const {
  return relative[slowest()].value_or(1);
}

std::optional<double> ring_seconds(double ranks, const JobFacts& job) {
  if (!job.gradient_bytes || !job.bus_bytes_per_second || *job.bus_bytes_per_second <= 0 || ranks < 2)
    return std::nullopt;
  return 2 * (ranks - 1) * job.hop_seconds.value_or(0) +
         2 * (ranks - 1) / ranks * *job.gradient_bytes / *job.bus_bytes_per_second;
}

Signals signals_of(std::span<const StepWork> steps, const JobFacts& job, double block_seconds) {
  assert(!steps.empty());
  Signals s;
  s.present = present_ranks(steps.front());
  const std::size_t ranks = s.present.size();
  s.samples.assign(ranks, 0);
  s.work = s.own = s.input = s.no_core = s.no_core_reducing = s.samples;
  const double weight = 1.0 / static_cast<double>(steps.size());
  for (const StepWork& step : steps) {
    std::vector<double> own, with_cores;
    for (std::size_t i = 0; i < ranks; ++i) {
      const RankWork& rank = step.ranks[s.present[i]];
      s.samples[i] += rank.samples * weight;
      s.work[i] += rank.work * weight;
      s.own[i] += rank.own_seconds() * weight;
      s.input[i] += rank.input_seconds * weight;
      s.compute_seconds += rank.compute_seconds * weight / static_cast<double>(ranks);
      s.optimizer_seconds += rank.optimizer_seconds * weight / static_cast<double>(ranks);
      s.no_core[i] += rank.no_core_seconds * weight;
      s.no_core_reducing[i] += rank.no_core_reducing_seconds * weight;
      own.push_back(rank.own_seconds());
      with_cores.push_back(rank.own_seconds() - rank.no_core_seconds);
    }
    const double slowest = *std::max_element(own.begin(), own.end());
    s.step_seconds += step.step_seconds * weight;
    s.net_seconds += (step.step_seconds - slowest) * weight;
    s.wait_seconds += (slowest - mean(own)) * weight;
    s.wait_with_cores_seconds += (*std::max_element(with_cores.begin(), with_cores.end()) - mean(with_cores)) * weight;
  }
  s.relative = relative_performance(s.samples, s.own);
  s.blocks = blocks_of(steps, s.present, block_seconds);
  s.what = what_if(s.blocks);
  s.imbalance = s.what.slowdown - 1;
  if (s.step_seconds > 0) {
    for (std::vector<double>* shares : {&s.no_core, &s.no_core_reducing})
      for (double& share : *shares) share /= s.step_seconds;
    s.input_share = mean(s.input) / s.step_seconds;
    s.net_share = s.net_seconds / s.step_seconds;
  }
  s.ring_seconds = ring_seconds(static_cast<double>(ranks), job);
  if (s.ring_seconds && *s.ring_seconds > 0) s.rho = s.net_seconds / *s.ring_seconds;
  s.work_correlation = correlation_of(steps, s.present);
  return s;
}

}  // namespace evenkeel::trainer
