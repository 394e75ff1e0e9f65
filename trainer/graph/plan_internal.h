// The stages of compile_plan(), one file each: liveness of arena 5, buckets of arena 3. Nobody else includes
// this.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/graph/plan.h"

namespace evenkeel::trainer::plan_internal {

inline std::uint64_t align_up(std::uint64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

// Fills first_step, last_step, shares_with and the offsets of the tensors in arena 5; returns the bytes it
// needs.
std::uint64_t place_activations(Plan& plan);

// Cuts arena 3. bucket_bytes > 0. The first bucket is small: its all-reduce starts, and shows a slow peer,
// early.
std::vector<Bucket> cut_buckets(const Plan& plan, std::uint64_t bucket_bytes);

}  // namespace evenkeel::trainer::plan_internal
