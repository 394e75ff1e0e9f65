// What two ranks must have in common to add their gradients: operators, parameters, buckets; not the local
// batch. One hash for each layer, so that a mismatch can name the layer. Used by the rendezvous. Pure.
#pragma once

#include <string>
#include <vector>

#include "trainer/graph/plan.h"

namespace evenkeel::trainer {

struct LayerHash {
  std::string layer;    // the last two entries are "loss" and "buckets"
  std::string summary;  // "Linear dense_1.kernel (784, 512) ..."
  std::string hash;     // 16 hex digits of the summary's SHA-256

  bool operator==(const LayerHash&) const = default;
};

std::vector<LayerHash> layer_hashes(const Plan& training_plan);
// 64 hex digits over all of them.
std::string plan_hash(const std::vector<LayerHash>& layers);
// Empty when equal; else one sentence that names the first layer that differs and both sides.
std::string describe_difference(const std::vector<LayerHash>& ours, const std::vector<LayerHash>& theirs);

}  // namespace evenkeel::trainer
