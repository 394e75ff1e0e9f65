// The stages of compile_plan(), one file each: cost of a step, liveness of arena 5, buckets of arena 3.
// Nobody else includes this.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/graph/plan.h"

namespace evenkeel::trainer::plan_internal {

bool is_view(OpKind op);  // moves nothing: its output lies where its input lies
std::int64_t flop_of(const Plan& plan, const PlanStep& step);
std::int64_t bytes_of(const Plan& plan, const PlanStep& step);  // read and written, each tensor once

// Fills first_step, last_step, shares_with and the offsets of the tensors in arena 5; returns the bytes it
// needs.
// keep_all as in PlanOptions.
std::uint64_t place_activations(Plan& plan, bool keep_all);

// Cuts arena 3. bucket_bytes > 0. The first bucket is small: its all-reduce starts, and shows a slow peer,
// early.
std::vector<Bucket> cut_buckets(const Plan& plan, std::uint64_t bucket_bytes);

}  // namespace evenkeel::trainer::plan_internal
