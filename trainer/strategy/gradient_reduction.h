// Turns the gradients of one rank into the gradient of the whole batch: sums every bucket over all ranks, and
// with the last bucket a side vector of fp32 numbers that must never be split from it (how many samples,
// their loss). The division by the reduced count is part of the optimizer's pass. A rank without samples
// takes part with zeros. Made once for each communicator; used by the loop's thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "trainer/collectives/collective.h"
#include "trainer/graph/plan.h"
#include "trainer/strategy/fixed_point.h"

namespace evenkeel::trainer {

// What one rank knows of its share of a step.
struct StepSums {
  double loss = 0;         // sum over samples
  std::int64_t count = 0;  // samples that took part
  std::int64_t correct = 0;
  std::int64_t skipped = 0;  // bad records: in the plan, in no gradient
  std::uint64_t ids_hash = 0;  // sum of mix64(sample id), modulo 2^64, of what was read
};

struct ReducedSums {
  double loss = 0;
  std::int64_t count = 0;
  std::int64_t correct = 0;
  std::int64_t skipped = 0;
  std::uint64_t ids_hash = 0;
  int ranks = 0;            // that took part
  int ranks_with_data = 0;
  int ranks_with_bad_loss = 0;  // whose own loss was not finite
};

// fp32 counts exactly up to here; more samples in one step are refused.
inline constexpr std::int64_t kMaxExactCount = std::int64_t{1} << 24;

class GradientReduction {
 public:
  // `gradients` is arena 3; `buckets` are slices of it. All three must outlive this object.
  GradientReduction(Collective& collective, const std::vector<Bucket>& buckets, std::span<float> gradients);

  // Backward has completed a bucket. Here is the place for a thread that reduces while backward goes on.
  void on_bucket_ready(int index);

  // All buckets, in order, and the side vector. Afterwards arena 3 holds the sums over all ranks, the same
  // bits on each. kMismatch: the ranks are not in the same step. Needs every bucket to be ready.
  base::Result<ReducedSums> reduce(std::int64_t step, const StepSums& own);

  // The same in 64-bit fixed point (fixed_point.h): the sum is the same to the bit whoever did which part of it.
  // `fixed` is laid out as arena 3 and holds this rank's sums. Costs twice the wire.
  base::Result<ReducedSums> reduce(std::int64_t step, const StepSums& own, FixedPointSums& fixed);

 private:
  base::Result<ReducedSums> check(std::int64_t step, float sequence, ReducedSums sums) const;

  Collective& collective_;
  const std::vector<Bucket>& buckets_;
  std::span<float> gradients_;
  int ready_ = 0;
};

struct EvaluationSums {
  double loss = 0;
  std::int64_t correct = 0;
  std::int64_t samples = 0;
  // Row = label, column = class with the largest logit, (classes, classes) row-major; empty unless asked for.
  std::vector<std::int64_t> confusion;
};
// Over all ranks, in fp64. Every rank has a confusion matrix of the same size, or none has.
base::Result<EvaluationSums> reduce_evaluation(Collective& collective, const EvaluationSums& own);

}  // namespace evenkeel::trainer
