// Samples that must stay together. With Ghost statistics the model's result depends on which samples share a
// group, so shares of ranks are whole groups; without batch normalisation single samples move. Known to
// operator (admission), coordinator (ledger) and trainer alike. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "contract/job/spec.h"

namespace evenkeel::contract {

inline constexpr std::int64_t kDefaultGhostGroup = 16;

bool has_batch_norm(const ModelSpec& model);

// Samples that share Ghost statistics: as given, else 16, or the per-rank batch if that is smaller. At
// least 1.
std::int64_t ghost_group(const TrainingJobSpec& spec);

// Shares are whole multiples of it, but for the last of a step. With `reproducible` and without batch normalisation:
// the unit of the sums, batchNorm.group or 16.
std::int64_t share_granule(const TrainingJobSpec& spec);

// Why the ranks cannot all have a group of each step; nothing where they can.
std::optional<std::string> too_few_groups(const TrainingJobSpec& spec);

}  // namespace evenkeel::contract
