// The table over which an optimizer walks: stretches of the common layout without the padding between
// parameters, so that no padding is ever read or written. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/graph/plan.h"

namespace evenkeel::trainer {

struct Segment {
  std::uint64_t begin = 0;  // elements
  std::uint64_t end = 0;
  double weight_decay = 0;
  bool adapts = true;  // LARS: takes part in the trust ratio; biases and batch norm do not
};

// kMerged: neighbours without padding between them and with the same treatment are one. kPerParameter: one
// for each, where norms of parameters are asked for.
enum class Segmentation { kMerged, kPerParameter };

// Sorted. Parameters that do not decay get weight_decay 0. Null plan: none.
std::vector<Segment> segments_of(const Plan* plan, double weight_decay, Segmentation segmentation);

// Whether all of them lie in an arena of so many elements.
bool covers(const std::vector<Segment>& segments, std::size_t elements);

}  // namespace evenkeel::trainer
