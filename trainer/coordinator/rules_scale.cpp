// All ranks alike: too little work for so many, data, cores, the network, checkpoints.
#include <algorithm>
#include <cmath>

#include "trainer/coordinator/rules.h"
#include "trainer/coordinator/words.h"

namespace evenkeel::trainer {
namespace {

constexpr double kInputShare = 0.05, kInputShareLarge = 0.20;
constexpr double kNetShare = 0.03, kNetShareLarge = 0.15;

std::string whole(double value) {
  return std::to_string(std::llround(value));
}

}  // namespace

std::optional<Fired> d01_batch_not_scaled(const Case& c) {
  if (c.job.batch_rule != BatchRule::kGlobalKept || c.signals.ranks() < 2 || !c.losses.fixed_cost)
    return std::nullopt;
  // The fixed cost holds what the optimizer needs for each step.
  const double overhead = std::max(*c.waterfall.fixed, c.signals.optimizer_seconds) + c.signals.net_seconds;
  const double share = overhead / c.waterfall.step_seconds;
  if (share <= 0.30) return std::nullopt;
  return Fired{"D01", "BatchNotScaled",
               "the global batch of " + whole(c.signals.mean_samples() * c.waterfall.ranks) +
                   " was kept, so that a rank has " + whole(c.signals.mean_samples()) + " samples; " +
                   percent(share) + " of each step does not shrink with them"};
}

std::optional<Fired> d02_too_little_work(const Case& c) {
  const double work = c.signals.compute_seconds - c.signals.optimizer_seconds;
  if (c.signals.ring_seconds && work < 2 * *c.signals.ring_seconds) {
    return Fired{"D02", "TooLittleWork",
                 "a rank computes for " + two_digits(work * 1000) + " ms and its gradients travel for " +
                     two_digits(*c.signals.ring_seconds * 1000) + " ms: a larger batch, or fewer ranks"};
  }
  const bool short_kernels = c.job.mean_kernel_seconds && *c.job.mean_kernel_seconds < 20e-6;
  if (!short_kernels || c.job.launch_share.value_or(0) <= 0.15) return std::nullopt;
  return Fired{"D02", "TooLittleWork",
               percent(*c.job.launch_share) + " of the time goes into starting kernels of " +
                   two_digits(*c.job.mean_kernel_seconds * 1e6) + " us: a larger batch"};
}

std::optional<Fired> d06_input_bound(const Case& c) {
  const bool waits = c.signals.input_share > kInputShare;
  const bool slower_than_synthetic = c.job.synthetic_speedup.value_or(1) > 1.05;
  if (!waits && !slower_than_synthetic) return std::nullopt;
  std::string sentence = percent(c.signals.input_share) + " of each step is waiting for data";
  if (slower_than_synthetic)
    sentence += ", and data made up would be " + two_digits(*c.job.synthetic_speedup) + " times as fast";
  sentence += c.signals.input_share > kInputShareLarge ? ": more data threads, a cache, or faster storage"
                                                       : ": more data threads";
  return Fired{"D06", "InputBound", sentence};
}

std::optional<Fired> d07_cpu_starved(const Case& c) {
  std::string ranks;
  double worst = 0;
  for (const std::size_t r : c.signals.present) {
    if (r >= c.ranks.size()) continue;
    const RankFacts& rank = c.ranks[r];
    if (!rank.cpu_limit || *rank.cpu_limit <= 0 || !rank.threads || !rank.throttled_share) continue;
    if (*rank.threads <= std::ceil(*rank.cpu_limit) || *rank.throttled_share <= 0.05) continue;
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(r);
    worst = std::max(worst, *rank.throttled_share);
  }
  // Where the global batch was kept, what does not shrink is put down to that.
  if (ranks.empty() && c.job.crowded && c.job.batch_rule != BatchRule::kGlobalKept) {
    const CrowdedNode& crowded = *c.job.crowded;
    return Fired{"D07", "CpuStarved",
                 "the ranks on node " + crowded.node + " want " + two_digits(crowded.wanted) + " cores and it has " +
                     std::to_string(crowded.cores) + ": fewer ranks on it, or more cores"};
  }
  if (ranks.empty()) return std::nullopt;
  return Fired{"D07", "CpuStarved",
               "rank " + ranks + " has more threads than cores and was throttled in up to " + percent(worst) +
                   " of the periods: as many threads as whole cores"};
}

std::optional<Fired> d08_slow_transport(const Case& c) {
  if (c.signals.net_share <= kNetShare || c.signals.rho.value_or(0) <= 1.5) return std::nullopt;
  return Fired{"D08", "CommunicationBound",
               percent(c.signals.net_share) + " of each step is exposed communication, " +
                   two_digits(*c.signals.rho) +
                   " times what the measured link needs: look at transport, interface and link"};
}

std::optional<Fired> d09_communication_by_design(const Case& c) {
  if (c.signals.net_share < kNetShareLarge || !c.signals.rho || *c.signals.rho > 1.5) return std::nullopt;
  const double n = c.waterfall.ranks;
  // For an efficiency of 0.9 a step may be longer by a ninth of its own work.
  const double allowed = (c.signals.step_seconds - c.signals.net_seconds) / 9;
  const double gigabits = 2 * (n - 1) / n * *c.job.gradient_bytes / allowed * 8 / 1e9;
  return Fired{"D09", "CommunicationBound",
               percent(c.signals.net_share) +
                   " of each step is exposed communication at the link's full speed; " +
                   two_digits(gigabits) + " Gb/s would allow an efficiency of 0.9"};
}

std::optional<Fired> d30_checkpoint_stall(const Case& c) {
  if (c.job.checkpoint_share.value_or(0) <= 0.05) return std::nullopt;
  return Fired{"D30", "CheckpointStall",
               percent(*c.job.checkpoint_share) +
                   " of the time is waiting for checkpoints: write them less often, or to faster storage"};
}

}  // namespace evenkeel::trainer
