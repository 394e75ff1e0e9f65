// More ranks than cores. The scheduler lets them run in turns: a rank that is ready to run and has no core is late,
// and who waits for bytes or for data is not ready to run. So the ranks' own scheduler statistics tell crowded cores
// from a slow network and from work that varies, where no limit is set and nothing is throttled.
#include <algorithm>

#include "trainer/coordinator/rules.h"
#include "trainer/coordinator/words.h"

namespace evenkeel::trainer {
namespace {

constexpr double kLacksACore = 0.05;  // of a step's time

// One rank that lacks a core is a slow rank; it takes most of them to call it the machine's fault.
bool most_lack_a_core(const Signals& s) {
  const auto lacking = std::count_if(s.no_core.begin(), s.no_core.end(), [](double share) { return share > kLacksACore; });
  return 2 * static_cast<std::size_t>(lacking) > s.ranks();
}

// A reduction stands still while any of its ranks does. Of its own the last arriver's is counted as own work
// already; each of the others may add to what is left. By chance, as if they were independent.
double reductions_standing_still(const Signals& s) {
  double none = 1, largest = 0;
  for (const double share : s.no_core_reducing) {
    none *= 1 - std::min(share, 1.0);
    largest = std::max(largest, share);
  }
  return std::max(0.0, 1 - none - largest);
}

Fired starved(const Case& c, const std::string& loss) {
  std::string sentence = "the ranks were ready to run and had no core for " + percent(mean(c.signals.no_core)) +
                         " of each step; " + loss;
  if (c.job.crowded) {
    const CrowdedNode& crowded = *c.job.crowded;
    sentence += "; those on node " + crowded.node + " want " + two_digits(crowded.wanted) + " cores and it has " +
                std::to_string(crowded.cores);
  }
  return {"D07", "CpuStarved", sentence + ": fewer ranks on a node, fewer threads, or more cores"};
}

}  // namespace

std::optional<Fired> d07_no_core_in_reductions(const Case& c) {
  const double net = c.signals.net_share;
  if (!most_lack_a_core(c.signals) || reductions_standing_still(c.signals) < net / 2) return std::nullopt;
  return starved(c, percent(net) + " of each step looks like communication and is mostly that");
}

std::optional<Fired> d07_no_core_in_turns(const Case& c) {
  const Signals& s = c.signals;
  if (s.slowest_relative() < c.limits.relative_below) return std::nullopt;  // not in turns
  if (!most_lack_a_core(s) || s.wait_seconds <= 0 || s.wait_seconds - s.wait_with_cores_seconds < s.wait_seconds / 2) return std::nullopt;
  return starved(c, percent(s.wait_seconds / s.step_seconds) +
                        " of each step is waiting for whoever lacks one, in turns");
}

std::optional<Fired> d07_no_core(const Case& c) {
  const double fixed = c.losses.fixed_cost.value_or(0);
  if (!most_lack_a_core(c.signals) || mean(c.signals.no_core) < fixed / 2) return std::nullopt;
  return starved(c, percent(fixed) + " of each step does not shrink with a rank's samples, and that is most of it");
}

}  // namespace evenkeel::trainer
