// Buckets: slices of arena 3 in the order in which backward completes them.
#include <algorithm>

#include "trainer/graph/plan_internal.h"

namespace evenkeel::trainer::plan_internal {
namespace {

// One slice per step that completes gradients. The layout follows the order of completion, so slices of
// successive steps touch.
std::vector<Bucket> slices_by_step(const Plan& plan) {
  std::vector<Bucket> slices;
  for (std::size_t s = static_cast<std::size_t>(plan.backward_begin); s < plan.steps.size(); ++s) {
    Bucket slice;
    slice.ready_after_step = static_cast<int>(s);
    slice.offset_elements = slices.empty() ? 0 : slices.back().offset_elements + slices.back().elements;
    for (const TensorId id : plan.steps[s].outputs) {
      const PlanTensor& t = plan.tensors[static_cast<std::size_t>(id)];
      if (t.role == TensorRole::kParameterGradient) slice.elements += align_up(t.size_bytes) / sizeof(float);
    }
    if (slice.elements > 0) slices.push_back(slice);
  }
  return slices;
}

// A slice much larger than a bucket travels as several, so that sending and adding overlap inside it.
void append_pieces(const Bucket& slice, std::uint64_t limit, std::vector<Bucket>& buckets) {
  constexpr std::uint64_t kStep = kArenaAlignment / sizeof(float);
  const bool cut = slice.elements > limit + limit / 2;
  const std::uint64_t pieces = cut ? (slice.elements + limit - 1) / limit : 1;
  const std::uint64_t piece = ((slice.elements + pieces - 1) / pieces + kStep - 1) / kStep * kStep;
  for (std::uint64_t at = 0; at < slice.elements; at += piece) {
    buckets.push_back(
        {slice.offset_elements + at, std::min(piece, slice.elements - at), slice.ready_after_step});
  }
}

}  // namespace

std::vector<Bucket> cut_buckets(const Plan& plan, std::uint64_t bucket_bytes) {
  constexpr std::uint64_t kStep = kArenaAlignment / sizeof(float);
  constexpr std::uint64_t kFirstIsSmallerBy = 64;  // 16 KB of the default 1 MB: one classifier layer
  const std::uint64_t limit = std::max(bucket_bytes / sizeof(float), kStep);
  std::vector<Bucket> buckets;
  Bucket open;
  for (const Bucket& slice : slices_by_step(plan)) {
    if (open.elements == 0) open.offset_elements = slice.offset_elements;
    open.elements += slice.elements;
    open.ready_after_step = slice.ready_after_step;
    if (open.elements < (buckets.empty() ? std::max(limit / kFirstIsSmallerBy, kStep) : limit)) continue;
    append_pieces(open, limit, buckets);
    open = {};
  }
  if (open.elements > 0) append_pieces(open, limit, buckets);
  const std::uint64_t statistics =
      plan.arena_bytes[static_cast<std::size_t>(Arena::kGradients)] / sizeof(float) - plan.layout_elements;
  // The sums of the running statistics travel last: they are complete long before, and nothing waits for
  // them.
  if (statistics > 0) {
    append_pieces({plan.layout_elements, statistics, static_cast<int>(plan.steps.size()) - 1}, limit,
                  buckets);
  }
  return buckets;
}

}  // namespace evenkeel::trainer::plan_internal
