#include "contract/job/sample_groups.h"

#include <algorithm>

namespace evenkeel::contract {

bool has_batch_norm(const ModelSpec& model) {
  if (model.preset.starts_with("resnet")) return true;
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const LayerSpec& layer) { return layer.type == "batchNorm"; });
}

std::int64_t ghost_group(const TrainingJobSpec& spec) {
  if (spec.training.batch_norm.group) return *spec.training.batch_norm.group;
  const std::int64_t per_rank = spec.global_batch() / std::max(1, spec.ranks());
  return std::clamp<std::int64_t>(per_rank, 1, kDefaultGhostGroup);
}

std::int64_t share_granule(const TrainingJobSpec& spec) {
  const bool ghost = spec.training.batch_norm.statistics == BatchNormStatistics::kGhost;
  if (ghost && has_batch_norm(spec.model)) return ghost_group(spec);
  return spec.training.reproducible ? spec.training.batch_norm.group.value_or(kDefaultGhostGroup) : 1;
}

std::optional<std::string> too_few_groups(const TrainingJobSpec& spec) {
  const std::int64_t granule = share_granule(spec);
  if (granule == 1) return std::nullopt;
  const std::int64_t groups = (spec.global_batch() + granule - 1) / granule;
  if (groups >= spec.ranks()) return std::nullopt;
  std::string unit;
  if (!has_batch_norm(spec.model)) {
    unit = " (the unit of reproducible sums, batchNorm.group";
    unit += spec.training.batch_norm.group ? ")" : ": 16 where it is absent)";
  }
  return "a global batch of " + std::to_string(spec.global_batch()) + " has " + std::to_string(groups) +
         " groups of " + std::to_string(granule) + " samples for " + std::to_string(spec.ranks()) + " ranks" + unit +
         ": make batchSize larger, batchNorm.group smaller, or use fewer replicas";
}

}  // namespace evenkeel::contract
