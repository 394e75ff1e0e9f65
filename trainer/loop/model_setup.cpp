#include "trainer/loop/model_setup.h"

#include <algorithm>

#include "contract/job/sample_groups.h"
#include "trainer/model/model.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

StatisticsMode mode_of(contract::BatchNormStatistics statistics) {
  switch (statistics) {
    case contract::BatchNormStatistics::kLocal:
      return StatisticsMode::kLocal;
    case contract::BatchNormStatistics::kSync:
      return StatisticsMode::kSync;
    case contract::BatchNormStatistics::kGhost:
      break;
  }
  return StatisticsMode::kGhost;
}

// Gradients of micro-batches are kept until the last one: one more arena of their size.
Status fits(const ModelSetup& setup, std::int64_t batch, bool accumulates, const MemoryBudget& budget) {
  EVENKEEL_ASSIGN(const Plan plan, compile_plan(setup.graph, batch, PlanMode::kTraining, setup.plan));
  const std::uint64_t kept = accumulates ? plan.arena_bytes[static_cast<std::size_t>(Arena::kGradients)] : 0;
  return check_memory(plan, budget.other_bytes + kept, budget.limit_bytes, budget.source);
}

}  // namespace

Result<ModelSetup> set_up_model(const contract::TrainingJobSpec& spec, const SplitInfo& train) {
  if (const auto why = contract::too_few_groups(spec))
    return Error{ErrorCode::kInvalidInput, "spec.training.batchNorm.group: " + *why};
  constexpr int kMostClasses = 1024;  // a matrix of 8 MB
  if (spec.training.confusion_matrix && train.num_classes > kMostClasses) {
    return Error{ErrorCode::kUnsupported, "spec.training.confusionMatrix: at most " +
                                              std::to_string(kMostClasses) + " classes, the data set has " +
                                              std::to_string(train.num_classes)};
  }
  ModelSetup setup;
  EVENKEEL_ASSIGN(setup.graph, build_model(spec.model, train.sample_shape, train.num_classes,
                                           spec.training.optimizer.convention));
  EVENKEEL_ASSIGN(const std::unique_ptr<Optimizer> probe, make_optimizer(spec.training.optimizer, nullptr));
  setup.plan.bucket_mib = spec.strategy.bucket_mib;
  setup.plan.optimizer_slots = probe->slots();
  setup.plan.statistics = mode_of(spec.training.batch_norm.statistics);
  setup.plan.group = contract::ghost_group(spec);
  setup.plan.label_smoothing = spec.training.label_smoothing;
  return setup;
}

std::int64_t largest_share(const contract::TrainingJobSpec& spec, std::int64_t train_samples) {
  const std::int64_t batch = std::min(spec.global_batch(), train_samples);
  const std::int64_t granule = contract::share_granule(spec);
  const std::int64_t granules = (batch + granule - 1) / granule;
  return std::min(batch, (granules + spec.ranks() - 1) / spec.ranks() * granule);
}

Result<std::int64_t> choose_micro_batch(const ModelSetup& setup, std::int64_t share, std::int64_t granule,
                                        const MemoryBudget& budget) {
  std::int64_t batch = share;
  for (;;) {
    const Status status = fits(setup, batch, batch < share, budget);
    if (status.ok()) return batch;
    // Statistics over the whole batch need the whole batch at once.
    const bool divisible = setup.plan.statistics == StatisticsMode::kGhost || granule == 1;
    if (!divisible || batch <= granule) return status.error();
    batch = std::max(granule, (batch / 2 + granule - 1) / granule * granule);
  }
}

Result<std::int64_t> choose_evaluation_batch(const ModelSetup& setup, std::int64_t micro_batch) {
  constexpr std::int64_t kLargest = 256;
  EVENKEEL_ASSIGN(const Plan training,
                  compile_plan(setup.graph, micro_batch, PlanMode::kTraining, setup.plan));
  for (std::int64_t batch = kLargest; batch > micro_batch; batch /= 2) {
    EVENKEEL_ASSIGN(const Plan plan, compile_plan(setup.graph, batch, PlanMode::kEvaluation, setup.plan));
    if (plan.activation_bytes <= training.activation_bytes) return batch;
  }
  return std::max<std::int64_t>(1, std::min(kLargest, micro_batch));
}

}  // namespace evenkeel::trainer
