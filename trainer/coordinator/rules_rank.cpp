// One rank, or some of them: shares, speed, work that varies, devices.
#include <algorithm>
#include <map>

#include "trainer/coordinator/rules.h"
#include "trainer/coordinator/words.h"

namespace evenkeel::trainer {
namespace {

double largest(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

// What part of the waiting ends when these ranks (indices) need as long as the mean of all.
double repaired_by(const Signals& s, const std::vector<std::size_t>& indices) {
  double measured = 0, average = 0, repaired = 0;
  for (const auto& block : s.blocks) {
    const double block_mean = mean(block);
    std::vector<double> what = block;
    for (const std::size_t i : indices) what[i] = block_mean;
    measured += largest(block);
    average += block_mean;
    repaired += largest(what);
  }
  return measured > average ? (measured - repaired) / (measured - average) : 0;
}

// Is one rank behind most of the waiting, or do several take turns?
bool one_rank_is_behind_it(const Case& c, std::size_t index) {
  const Signals& s = c.signals;
  const auto worst = std::max_element(s.what.rank_slowdown.begin(), s.what.rank_slowdown.end());
  const double needed = s.ranks() <= 3 ? c.limits.worst_share_few_ranks : c.limits.worst_share_at_least;
  if (s.what.rank_slowdown[index] >= *worst && s.what.worst_share >= needed) return true;
  return s.ranks() > 3 && s.what.last_share[index] > std::max(3.0 / static_cast<double>(s.ranks()), 0.5);
}

// Several slow ones hide each other from the what-if of one: together they must explain nearly everything.
std::vector<std::size_t> slow_together(const Case& c) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < c.signals.ranks(); ++i) {
    if (c.signals.relative[i].value_or(1) < c.limits.relative_below) indices.push_back(i);
  }
  const bool few = indices.size() >= 2 && 2 * indices.size() <= c.signals.ranks();
  if (!few || repaired_by(c.signals, indices) < c.limits.worst_share_few_ranks) return {};
  return indices;
}

// More than half of what it needs longer than the others is waiting for its data.
bool waits_for_data(const Signals& s, std::size_t index) {
  const double later = s.own[index] - lower_median(s.own);
  return later > 0 && s.input[index] - lower_median(s.input) > later / 2;
}

}  // namespace

std::string names_of(const std::vector<std::size_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

std::optional<Fired> d05_imbalanced_shares(const Case& c) {
  const Signals& s = c.signals;
  if (s.ranks() < 2 || c.job.shares_by_speed || mean(s.samples) <= 0) return std::nullopt;
  // What every rank needs whatever its share would make the large ones look fast.
  const double common =
      std::max(0.0, c.waterfall.fixed.value_or(0)) + *std::min_element(s.input.begin(), s.input.end());
  double slow = 1e300, fast = 0;
  for (std::size_t i = 0; i < s.ranks(); ++i) {
    const double units = s.work_explains() ? s.work[i] : s.samples[i];
    if (units <= 0 || s.own[i] <= common) continue;
    slow = std::min(slow, units / (s.own[i] - common));
    fast = std::max(fast, units / (s.own[i] - common));
  }
  if (fast <= 0 || slow / fast <= 0.9) return std::nullopt;
  const double records = largest(s.samples) / mean(s.samples);
  const double work = s.work_explains() ? largest(s.work) / mean(s.work) : 1;
  const bool by_records = records > 1.02;
  if (!by_records && work <= 1.10) return std::nullopt;
  const auto& most = by_records ? s.samples : s.work;
  const auto at = static_cast<std::size_t>(std::max_element(most.begin(), most.end()) - most.begin());
  return Fired{"D05", "ImbalancedShards",
               "rank " + std::to_string(s.present[at]) + " gets " + two_digits(by_records ? records : work) +
                   " times the mean " + (by_records ? "number of samples" : "work") + " at equal speed; " +
                   percent(c.losses.imbalance.value_or(0)) + " of each step is waiting for it"};
}

std::optional<Fired> d10_straggler(const Case& c) {
  const Signals& s = c.signals;
  if (s.ranks() < 2 || s.imbalance <= c.limits.imbalance_above) return std::nullopt;
  const std::size_t slowest = s.slowest();
  std::vector<std::size_t> slow{slowest};
  if (!one_rank_is_behind_it(c, slowest)) slow = slow_together(c);
  if (slow.empty()) return std::nullopt;
  std::vector<std::size_t> ranks;
  for (const std::size_t i : slow) ranks.push_back(s.present[i]);
  std::string sentence = names_of(ranks) + (ranks.size() == 1 ? " runs at " : " run at ") +
                         two_digits(s.slowest_relative()) + " of the others; " +
                         percent(c.waterfall.wait / c.waterfall.step_seconds) +
                         " of each step is waiting for " + (ranks.size() == 1 ? "it" : "them");
  // Together they are the loss by imbalance.
  const double lacking = c.waterfall.capacity / c.waterfall.step_seconds;
  if (lacking >= 0.01)
    sentence += " and " + percent(lacking) + " is the speed that " + (ranks.size() == 1 ? "it lacks" : "they lack");
  if (waits_for_data(s, slowest)) {
    sentence += ", as it waits for its data: look at its disk";
  } else {
    sentence += stopped_by_quota(c, ranks);
  }
  return Fired{"D10", "Straggler", sentence, ranks};
}

std::optional<Fired> d11_variable_work(const Case& c) {
  const Signals& s = c.signals;
  if (s.ranks() < 2 || s.imbalance <= c.limits.imbalance_above) return std::nullopt;
  if (s.what.worst_share >= c.limits.worst_share_at_least || !s.work_explains())
    return std::nullopt;
  return Fired{"D11", "VariableWork",
               percent(c.losses.imbalance.value_or(0)) +
                   " of each step is waiting for whoever has the most work, which is never the same rank for "
                   "long: bucket samples by size, or balance by work"};
}

std::optional<Fired> d12_heterogeneous_devices(const Case& c) {
  const Signals& s = c.signals;
  std::map<std::string, std::vector<double>> cost;
  for (std::size_t i = 0; i < s.ranks(); ++i) {
    if (s.present[i] >= c.ranks.size() || c.ranks[s.present[i]].device_model.empty()) return std::nullopt;
    // What a CPU limit stops says nothing about the CPU.
    if (s.samples[i] <= 0 || c.ranks[s.present[i]].throttled_share.value_or(0) > 0.05) continue;
    cost[c.ranks[s.present[i]].device_model].push_back(s.own[i] / s.samples[i]);
  }
  if (cost.size() < 2) return std::nullopt;
  const auto slower = [](const auto& a, const auto& b) { return mean(a.second) < mean(b.second); };
  const auto [fast, slow] = std::minmax_element(cost.begin(), cost.end(), slower);
  const double ratio = mean(slow->second) / mean(fast->second);
  if (ratio <= 1.10) return std::nullopt;
  return Fired{"D12", "HeterogeneousDevices",
               slow->first + " needs " + two_digits(ratio) + " times as long for a sample as " + fast->first +
                   "; " + percent(c.losses.imbalance.value_or(0)) + " of each step is lost: weighted shares"};
}

}  // namespace evenkeel::trainer
