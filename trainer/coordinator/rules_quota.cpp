// Ranks that their CPU limits stop. A rank under a quota runs at full speed until the period's quota is used up and
// then stands still until the next period: wherever that happens, in a reduction too, it is the rank's own
// slowness, and what looks like a slow network is waiting for it.
#include <algorithm>
#include <cmath>

#include "trainer/coordinator/rules.h"
#include "trainer/coordinator/words.h"

namespace evenkeel::trainer {
namespace {

constexpr double kThrottled = 0.05;  // of the periods

// Up to what part of the time it stands still: in a period that is used up, all but what its threads need for
// that. Background threads run beside as many as it has cores.
double standing_still(const RankFacts& rank) {
  if (!rank.cpu_limit || *rank.cpu_limit <= 0) return 0;
  const double threads = std::max<double>(rank.threads.value_or(1), std::floor(*rank.cpu_limit) + 1);
  return rank.throttled_share.value_or(0) * (1 - *rank.cpu_limit / threads);
}

// Indices of `present`.
std::vector<std::size_t> stopped_ranks(const Case& c) {
  std::vector<std::size_t> stopped;
  for (std::size_t i = 0; i < c.signals.ranks(); ++i) {
    const std::size_t r = c.signals.present[i];
    if (r < c.ranks.size() && c.ranks[r].throttled_share.value_or(0) > kThrottled &&
        c.ranks[r].cpu_limit.value_or(0) > 0)
      stopped.push_back(i);
  }
  return stopped;
}

double worst_of(const Case& c, const std::vector<std::size_t>& indices) {
  double worst = 0;
  for (const std::size_t i : indices) worst = std::max(worst, *c.ranks[c.signals.present[i]].throttled_share);
  return worst;
}

std::vector<std::size_t> ranks_at(const Case& c, const std::vector<std::size_t>& indices) {
  std::vector<std::size_t> ranks;
  for (const std::size_t i : indices) ranks.push_back(c.signals.present[i]);
  return ranks;
}

}  // namespace

std::string stopped_by_quota(const Case& c, const std::vector<std::size_t>& ranks) {
  double limit = 0, worst = 0;
  for (const std::size_t r : ranks) {
    if (r >= c.ranks.size() || c.ranks[r].throttled_share.value_or(0) <= std::max(worst, kThrottled)) continue;
    worst = *c.ranks[r].throttled_share;
    limit = c.ranks[r].cpu_limit.value_or(0);
  }
  if (worst <= 0 || limit <= 0) return "";
  return ", stopped by its CPU limit of " + two_digits(limit) + " cores in " + percent(worst) +
         " of the periods: a larger limit, or a smaller share";
}

std::optional<Fired> d10_stopped_rank(const Case& c) {
  const std::vector<std::size_t> stopped = stopped_ranks(c);
  if (stopped.empty() || 2 * stopped.size() > c.signals.ranks()) return std::nullopt;
  double still = 0;
  for (const std::size_t r : ranks_at(c, stopped)) still = std::max(still, standing_still(c.ranks[r]));
  if (still < c.signals.net_share / 2) return std::nullopt;  // it explains the lesser part
  const std::vector<std::size_t> ranks = ranks_at(c, stopped);
  return Fired{"D10", "Straggler",
               names_of(ranks) + stopped_by_quota(c, ranks) + "; the others wait for " +
                   (ranks.size() == 1 ? "it" : "them") + " in the reduction, " + percent(c.signals.net_share) +
                   " of each step",
               ranks};
}

std::optional<Fired> d07_stopped_ranks(const Case& c) {
  const std::vector<std::size_t> stopped = stopped_ranks(c);
  if (stopped.empty() || 2 * stopped.size() <= c.signals.ranks()) return std::nullopt;
  double still = 0;
  for (const std::size_t r : ranks_at(c, stopped))
    still += standing_still(c.ranks[r]) / static_cast<double>(stopped.size());
  const double lost = std::max({c.signals.net_share, c.losses.fixed_cost.value_or(0),
                                c.waterfall.wait / c.waterfall.step_seconds});
  if (still < lost / 2) return std::nullopt;
  return Fired{"D07", "CpuStarved",
               names_of(ranks_at(c, stopped)) + " are stopped by their CPU limits in up to " +
                   percent(worst_of(c, stopped)) + " of the periods; " + percent(lost) +
                   " of each step is lost that way: larger limits"};
}

}  // namespace evenkeel::trainer
