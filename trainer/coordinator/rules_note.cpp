// Configuration and environment: worth saying whatever the verdict is.
#include <algorithm>
#include <cmath>

#include "trainer/coordinator/rules.h"
#include "trainer/coordinator/words.h"

namespace evenkeel::trainer {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

using Note = std::optional<Fired>;

Note d17_learning_rate(const CheckFacts& c) {
  const bool not_scaled =
      c.updates_fell_by && c.rate_rose_by && *c.updates_fell_by >= 2 &&
      *c.rate_rose_by < std::min(1.5, 0.99 * std::sqrt(*c.updates_fell_by));  // the rule of Adam is a rule
  if (not_scaled) {
    return Fired{"D17", "LearningRateMismatch",
                 "updates an epoch fell by a factor of " + two_digits(*c.updates_fell_by) +
                     " and the learning rate rose by " + two_digits(*c.rate_rose_by)};
  }
  if (!c.warmup_loss_ratio || *c.warmup_loss_ratio <= 3) return std::nullopt;
  return Fired{"D17", "LearningRateMismatch",
               "the loss reached " + two_digits(*c.warmup_loss_ratio) +
                   " times its median in warm-up: the learning rate is too high"};
}

Note d18_small_batch_norm(const JobFacts& job, std::optional<double> samples_per_rank) {
  if (!job.local_batch_norm.value_or(false) || !samples_per_rank || *samples_per_rank >= 16)
    return std::nullopt;
  return Fired{"D18", "SmallBatchNorm",
               "batch statistics are of " + two_digits(*samples_per_rank) +
                   " samples a rank, fewer than 16: batchNorm.statistics Sync or Ghost"};
}

Note d20_fp16_overflow(const CheckFacts& c) {
  const bool skips = c.steps && c.skipped_steps && *c.steps >= 200 &&
                     static_cast<double>(*c.skipped_steps) > 0.05 * static_cast<double>(*c.steps);
  const bool small_scale = c.loss_scale && *c.loss_scale < 128;
  if (!skips && !small_scale && c.scale_halvings.value_or(0) < 10) return std::nullopt;
  const std::string what = skips ? std::to_string(*c.skipped_steps) + " steps were skipped"
                           : small_scale
                               ? "the loss scale fell to " + two_digits(*c.loss_scale)
                               : std::to_string(*c.scale_halvings) + " times the loss scale was halved";
  return Fired{"D20", "Fp16Overflow", what + ": bf16 has the range that fp16 lacks"};
}

Note d24_shared_memory(const CheckFacts& c) {
  if (!c.shared_memory_bytes || !c.ranks_per_pod || *c.ranks_per_pod < 2 || *c.shared_memory_bytes >= kGiB)
    return std::nullopt;
  return Fired{"D24", "SharedMemorySmall",
               "/dev/shm has " + two_digits(*c.shared_memory_bytes / kGiB) + " GiB for " +
                   std::to_string(*c.ranks_per_pod) + " ranks: they use TCP"};
}

Note d25_gang_incomplete(const CheckFacts& c) {
  if (!c.running_pods || !c.pending_pods || *c.running_pods < 1 || *c.pending_pods < 1 ||
      c.pending_seconds.value_or(0) <= 120)
    return std::nullopt;
  return Fired{"D25", "GangIncomplete",
               std::to_string(*c.running_pods) + " pods run and " + std::to_string(*c.pending_pods) +
                   " wait for a node" + (c.pending_reason.empty() ? "" : ": " + c.pending_reason)};
}

Note d26_sparse_reduce(const JobFacts& job) {
  if (!job.sparse_bytes || !job.dense_bytes || *job.sparse_bytes <= *job.dense_bytes) return std::nullopt;
  return Fired{"D26", "SparseReduce",
               "gathering sparse gradients moves " + two_digits(*job.sparse_bytes / *job.dense_bytes) +
                   " times the bytes of a dense reduction"};
}

}  // namespace

std::vector<Fired> notes(const JobFacts& job, const CheckFacts& checks,
                         std::optional<double> samples_per_rank) {
  std::vector<Fired> fired;
  for (Note& note : std::vector<Note>{d17_learning_rate(checks), d18_small_batch_norm(job, samples_per_rank),
                                      d20_fp16_overflow(checks), d24_shared_memory(checks),
                                      d25_gang_incomplete(checks), d26_sparse_reduce(job)}) {
    if (note) fired.push_back(std::move(*note));
  }
  return fired;
}

}  // namespace evenkeel::trainer
