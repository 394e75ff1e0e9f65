#include "trainer/strategy/gradient_reduction.h"

#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <string>

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

// A 64-bit hash travels in limbs whose sums over 4096 ranks stay exact in fp32.
constexpr int kHashLimbs = 6, kLimbBits = 12;
enum Side { kLoss, kCount, kCorrect, kSkipped, kBadLoss, kHasData, kSequence, kHash, kSideSize = kHash + kHashLimbs };
using SideVector = std::array<float, kSideSize>;

// Modulus of the step in the side vector: with it, sums over 4096 ranks stay exact in fp32.
constexpr std::int64_t kSequenceModulus = 4096;

SideVector pack(std::int64_t step, const StepSums& own) {
  const bool finite = std::isfinite(own.loss);
  SideVector side{};
  side[kLoss] = static_cast<float>(own.loss);
  side[kCount] = static_cast<float>(own.count);
  side[kCorrect] = static_cast<float>(own.correct);
  side[kSkipped] = static_cast<float>(own.skipped);
  side[kBadLoss] = finite ? 0.0f : 1.0f;
  side[kHasData] = own.count > 0 ? 1.0f : 0.0f;
  side[kSequence] = static_cast<float>(step % kSequenceModulus);
  for (int limb = 0; limb < kHashLimbs; ++limb)
    side[static_cast<std::size_t>(kHash + limb)] =
        static_cast<float>(own.ids_hash >> (limb * kLimbBits) & ((1u << kLimbBits) - 1));
  return side;
}

ReducedSums unpack(const SideVector& side) {
  ReducedSums sums;
  sums.loss = static_cast<double>(side[kLoss]);
  sums.count = std::llround(side[kCount]);
  sums.correct = std::llround(side[kCorrect]);
  sums.skipped = std::llround(side[kSkipped]);
  sums.ranks_with_bad_loss = static_cast<int>(side[kBadLoss]);
  sums.ranks_with_data = static_cast<int>(side[kHasData]);
  for (int limb = 0; limb < kHashLimbs; ++limb)  // modulo 2^64, as the sum of the hashes is
    sums.ids_hash += static_cast<std::uint64_t>(side[static_cast<std::size_t>(kHash + limb)]) << (limb * kLimbBits);
  return sums;
}

}  // namespace

GradientReduction::GradientReduction(Collective& collective, const std::vector<Bucket>& buckets,
                                     std::span<float> gradients)
    : collective_(collective), buckets_(buckets), gradients_(gradients) {}

void GradientReduction::on_bucket_ready(int index) {
  assert(index == ready_);
  ready_ = index + 1;
}

Result<ReducedSums> GradientReduction::reduce(std::int64_t step, const StepSums& own) {
  assert(ready_ == static_cast<int>(buckets_.size()));
  ready_ = 0;
  if (own.count > kMaxExactCount) {
    return Error{ErrorCode::kUnsupported, "a share of " + std::to_string(own.count) +
                                              " samples in one step: at most " +
                                              std::to_string(kMaxExactCount) + " can be counted exactly"};
  }
  SideVector side = pack(step, own);
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const bool last = i + 1 == buckets_.size();
    const std::span<float> slice = gradients_.subspan(buckets_[i].offset_elements, buckets_[i].elements);
    EVENKEEL_TRY(collective_.all_reduce(slice, static_cast<std::uint32_t>(i),
                                        last ? std::span<float>(side) : std::span<float>()));
  }
  if (buckets_.empty()) EVENKEEL_TRY(collective_.all_reduce(std::span<float>(side), 0));

  return check(step, side[kSequence], unpack(side));
}

// What the side vector proves: that all ranks are in this step, and that the count is exact.
Result<ReducedSums> GradientReduction::check(std::int64_t step, float sequence, ReducedSums sums) const {
  const auto expected = static_cast<float>(step % kSequenceModulus * collective_.size());
  if (sequence != expected) {
    return Error{ErrorCode::kMismatch,
                 "reducing step " + std::to_string(step) + ": the ranks are in different steps"};
  }
  sums.ranks = collective_.size();
  if (sums.count > kMaxExactCount) {
    return Error{ErrorCode::kUnsupported,
                 "a step of more than " + std::to_string(kMaxExactCount) +
                     " samples cannot be counted exactly; use a smaller global batch"};
  }
  return sums;
}

Result<ReducedSums> GradientReduction::reduce(std::int64_t step, const StepSums& own, FixedPointSums& fixed) {
  assert(ready_ == static_cast<int>(buckets_.size()));
  ready_ = 0;
  SideVector side = pack(step, own);
  if (fixed.overflowed(collective_.size())) side[kBadLoss] = 1;
  // The loss as a multiple of 2^-20, the others are integers already.
  constexpr double kLossScale = 1048576.0;
  std::array<std::int64_t, kSideSize> integers{};
  for (std::size_t i = 0; i < side.size(); ++i) integers[i] = std::llrint(i == kLoss ? 0 : side[i]);
  if (side[kBadLoss] == 0) integers[kLoss] = std::llrint(own.loss * kLossScale);
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const std::span<std::int64_t> slice = fixed.values().subspan(buckets_[i].offset_elements, buckets_[i].elements);
    const bool last = i + 1 == buckets_.size();
    EVENKEEL_TRY(collective_.all_reduce(slice, static_cast<std::uint32_t>(i),
                                        last ? std::span(integers) : std::span<std::int64_t>()));
  }
  if (buckets_.empty()) EVENKEEL_TRY(collective_.all_reduce(std::span(integers), 0));
  for (std::size_t i = 0; i < side.size(); ++i) side[i] = static_cast<float>(integers[i]);
  fixed.to_floats(gradients_);
  ReducedSums sums = unpack(side);
  sums.loss = sums.ranks_with_bad_loss > 0 ? std::numeric_limits<double>::quiet_NaN()
                                           : static_cast<double>(integers[kLoss]) / kLossScale;
  return check(step, side[kSequence], sums);
}

Result<EvaluationSums> reduce_evaluation(Collective& collective, const EvaluationSums& own) {
  std::vector<double> sums{own.loss, static_cast<double>(own.correct), static_cast<double>(own.samples)};
  for (const std::int64_t count : own.confusion) sums.push_back(static_cast<double>(count));
  EVENKEEL_TRY(collective.all_reduce(std::span<double>(sums), 0));
  EvaluationSums all{sums[0], std::llround(sums[1]), std::llround(sums[2]), {}};
  for (std::size_t i = 3; i < sums.size(); ++i) all.confusion.push_back(std::llround(sums[i]));
  return all;
}

}  // namespace evenkeel::trainer
