// A job of unequal ranks, simulated: own work is samples times a cost times noise, a step is as long as its
// slowest rank and `rest`, plans are issued 4 ahead, and decisions are carried out as the ledger does. Tests
// only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <numbers>
#include <vector>

#include "trainer/coordinator/balancer.h"

namespace evenkeel::trainer {

// A sequence of its own for each seed: the same on every machine.
class Normal {
 public:
  explicit Normal(std::uint64_t seed) : state_(seed * 0xD1342543DE82EF95u + 0x2545F4914F6CDD1Du) {}
  double uniform() {  // in (0, 1)
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
  }
  double operator()(double deviation) {  // mean 1, never far from it
    if (deviation <= 0) return 1;
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return std::clamp(1 + deviation * radius * std::cos(2 * std::numbers::pi * uniform()), 0.2, 1.8);
  }

 private:
  std::uint64_t state_;
};

class SimulatedJob {
 public:
  struct Options {
    std::size_t ranks = 4;
    std::int64_t batch_per_rank = 32;
    double noise = 0;  // coefficient of variation of own work, by rank and step
    double seconds_per_sample = 0.002;
    double rest_seconds = 0.002;  // of a step
    double reduction_seconds = 0;  // of a core that each rank needs for the reduction, once all have come to it
    std::uint32_t seed = 1;
    BalancerConfig config = {};
  };

  explicit SimulatedJob(Options options)
      : options_(std::move(options)), random_(options_.seed), factor(options_.ranks, 1.0) {
    options_.config.global_batch = static_cast<std::int64_t>(options_.ranks) * options_.batch_per_rank;
    balancer.emplace(options_.config);
    for (int i = 0; i < kPlansAhead; ++i) plans_.push_back(divide());
  }

  // One step: what it cost, and what was decided.
  std::optional<BalanceDecision> step() {
    ++steps;
    StepWork work;
    work.step = steps;
    double slowest = 0;
    for (std::size_t r = 0; r < options_.ranks; ++r) {
      RankWork rank;
      rank.samples = static_cast<double>(plans_.front()[r]);
      rank.compute_seconds = rank.samples * options_.seconds_per_sample * factor[r] * random_(options_.noise);
      if (quota[r] < 1) rank.compute_seconds = throttled(r, now_, rank.compute_seconds);
      rank.compute_seconds += fixed_seconds[r];
      if (rests[r]) rank = away();
      slowest = std::max(slowest, rank.own_seconds());
      work.ranks.push_back(rank);
    }
    // The reduction takes as long as the rank that stands still in it, and that is the rank's own time.
    const double begin = now_ + slowest;
    double reduced = options_.reduction_seconds;
    for (std::size_t r = 0; r < options_.ranks; ++r) {
      if (quota[r] >= 1) continue;
      const double took = throttled(r, begin, options_.reduction_seconds);
      work.ranks[r].compute_seconds += took - options_.reduction_seconds;
      work.ranks[r].throttled_share = share_of_periods(r, begin + took);
      reduced = std::max(reduced, took);
    }
    now_ = begin + reduced + options_.rest_seconds;
    shares = plans_.front();
    plans_.erase(plans_.begin());
    work.step_seconds = slowest + reduced + options_.rest_seconds;
    step_seconds = work.step_seconds;
    own_seconds = slowest;
    balancer->add(work, false);
    const auto decision = balancer->decide(steps + kPlansAhead);
    if (decision && decision->rank >= 0 && carries_drops) {
      regroup(*decision);
    } else if (decision && decision->rank < 0) {
      costs_ = decision->seconds_per_sample;
      ++changes;
      changed_at = steps + kPlansAhead;
    }
    plans_.push_back(divide());
    return decision;
  }

  // Own work of the slowest rank with the best shares of any fraction, over what it is with these shares.
  double of_optimum() const {
    double speed = 0, slowest = 0;
    for (std::size_t r = 0; r < options_.ranks; ++r) {
      speed += 1 / factor[r];
      slowest = std::max(slowest, static_cast<double>(shares[r]) * factor[r]);
    }
    return static_cast<double>(options_.config.global_batch) / speed / slowest;
  }

 private:
  static constexpr int kPlansAhead = 4;

  // As Coordination does at a step boundary: plans that are out are void.
  void regroup(const BalanceDecision& decision) {
    const bool drops = decision.action == BalanceAction::kDropRank;
    rests[static_cast<std::size_t>(decision.rank)] = drops;
    plans_.assign(kPlansAhead - 1, divide());
    balancer->regrouped(options_.config.global_batch);
    if (drops) balancer->dropped(decision, steps + 1);
  }

  std::vector<std::int64_t> divide() const {
    std::vector<std::optional<double>> costs = costs_;
    if (costs.empty()) costs.assign(options_.ranks, 1.0);
    for (std::size_t r = 0; r < options_.ranks; ++r) {
      if (rests[r]) costs[r].reset();
    }
    return min_max_shares(options_.config.global_batch, costs, options_.config.limits).shares;
  }

  // How long so much work of one core takes from now on: when a period's quota is used up, the rank stands
  // still until the next one begins.
  double throttled(std::size_t r, double start, double work) {
    double at = start;
    while (true) {
      const double period = std::floor(at / kPeriod + 1e-9);
      if (period > period_[r]) used_[r] = 0;
      period_[r] = period;
      const double next = (period + 1) * kPeriod;
      const double can = std::min(quota[r] * kPeriod - used_[r], next - at);
      if (work <= can) {
        used_[r] += work;
        return at + work - start;
      }
      used_[r] += std::max(0.0, can);
      work -= std::max(0.0, can);
      if (at + can < next) stopped_in_[r].push_back(period);
      at = next;
    }
  }

  // Of the last ten seconds, as the heartbeats tell.
  double share_of_periods(std::size_t r, double now) {
    constexpr double kPeriods = 100;
    auto& stopped = stopped_in_[r];
    while (!stopped.empty() && stopped.front() < now / kPeriod - kPeriods) stopped.pop_front();
    return std::min(1.0, static_cast<double>(stopped.size()) / std::clamp(now / kPeriod, 1.0, kPeriods));
  }

  static constexpr double kPeriod = 0.1;
  Options options_;
  double now_ = 0;
  std::vector<std::deque<double>> stopped_in_ = std::vector<std::deque<double>>(options_.ranks);
  std::vector<double> used_ = std::vector<double>(options_.ranks, 0), period_ = used_;
  Normal random_;
  std::vector<std::optional<double>> costs_;
  std::vector<std::vector<std::int64_t>> plans_;

 public:
  std::vector<bool> rests = std::vector<bool>(options_.ranks, false);
  std::vector<double> fixed_seconds = std::vector<double>(options_.ranks, 0);  // of each step, by rank
  bool carries_drops = true;
  std::vector<double> factor;                                          // slowness by rank
  std::vector<double> quota = std::vector<double>(options_.ranks, 1);  // of a core, by rank
  std::optional<Balancer> balancer;
  std::int64_t steps = 0, changed_at = 0;
  int changes = 0;
  double own_seconds = 0, step_seconds = 0;
  std::vector<std::int64_t> shares;
};

}  // namespace evenkeel::trainer
