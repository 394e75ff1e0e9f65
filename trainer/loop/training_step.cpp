#include "trainer/loop/training_step.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/clock.h"
#include "trainer/loop/sharding.h"
#include "trainer/optim/finite.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

constexpr std::uint32_t kSkippedBucket = 0xFFFD;  // in no plan

// A step whose sum holds other samples than planned must not become weights.
base::Status check_count(const contract::StepPlan& plan, const ReducedSums& sums) {
  if (sums.count + sums.skipped == plan.planned()) return {};
  return Error{ErrorCode::kInternal, "step " + std::to_string(plan.step) + ": the reduced gradient holds " +
                                         std::to_string(sums.count) + " samples and " +
                                         std::to_string(sums.skipped) + " skipped ones, planned were " +
                                         std::to_string(plan.planned())};
}

// Every rank must know what none is to read again: the order is another in the next epoch, and any rank may be the
// one that writes the checkpoint. Only in steps that skip something.
base::Status share_what_was_skipped(const StepContext& context, const std::vector<std::int64_t>& own,
                                    std::int64_t total) {
  Collective& collective = context.collective;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(collective.size()), 0);
  const auto me = static_cast<std::size_t>(collective.rank());
  counts[me] = static_cast<std::int64_t>(own.size());
  EVENKEEL_TRY(collective.all_reduce(std::span<std::int64_t>(counts), kSkippedBucket));
  if (std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) != total)
    return Error{ErrorCode::kInternal, "the ranks do not agree on how many records were skipped"};
  std::vector<std::int64_t> ids(static_cast<std::size_t>(total), 0);
  const auto before = std::accumulate(counts.begin(), counts.begin() + collective.rank(), std::int64_t{0});
  std::copy(own.begin(), own.end(), ids.begin() + before);
  EVENKEEL_TRY(collective.all_reduce(std::span<std::int64_t>(ids), kSkippedBucket));
  return context.replica.skip_from_now_on(ids);
}

// Squared norm of this rank's own mean gradient, for the noise scale; 0: not measured. It is a pass over the
// gradient, so not in every step. A gradient of means, or of the last unit alone, is another one.
double own_gradient_square(const StepContext& context, const contract::StepPlan& plan, const StepSums& own) {
  constexpr std::int64_t kEverySteps = 5;
  const contract::TrainingSpec& training = context.replica.spec().training;
  const bool sums = training.loss_normalization != contract::LossNormalization::kPerReplicaMean &&
                    !training.reproducible;
  if (!sums || context.collective.size() < 2 || plan.step % kEverySteps != 0 || own.count < 1) return 0;
  const double square = squared_norm(context.replica.engine().gradients());
  return square / (static_cast<double>(own.count) * static_cast<double>(own.count));
}

}  // namespace

Result<StepSums> compute_share(Replica& replica, GradientReduction& reduction, const PhaseObserver& enter) {
  StepSums sums;
  for (int micro = 0; micro < replica.micro_batches(); ++micro) {
    if (enter) enter(StepPhase::kForward);
    EVENKEEL_ASSIGN(const StepSums part, replica.forward(micro));
    sums.loss += part.loss;
    sums.count += part.count;
    sums.correct += part.correct;
    if (enter) enter(StepPhase::kBackward);
    EVENKEEL_TRY(replica.backward(micro, reduction));
  }
  return sums;
}

Result<contract::Commit> run_step(const StepContext& context, const contract::StepPlan& plan) {
  Replica& replica = context.replica;
  replica.inject_for_step(plan.step);
  const PositionRanges share = share_of(plan, context.rank);
  replica.prepare_share(share);
  context.enter(StepPhase::kInputWait);
  EVENKEEL_ASSIGN(const BatchTaken taken, replica.read_share(plan.epoch, share));
  EVENKEEL_ASSIGN(StepSums own, compute_share(replica, context.reduction,
                                              [&](StepPhase phase) { context.enter(phase); }));
  own.skipped = taken.skipped;
  own.ids_hash = taken.id_hash;
  replica.inject_into_gradients();
  const double own_square = own_gradient_square(context, plan, own);
  context.enter(StepPhase::kCollectiveWait);
  FixedPointSums* const fixed = replica.fixed_sums();
  EVENKEEL_ASSIGN(const ReducedSums sums, fixed != nullptr ? context.reduction.reduce(plan.step, own, *fixed)
                                                           : context.reduction.reduce(plan.step, own));
  if (replica.injected_network_seconds() > 0)
    base::real_clock().sleep_for(base::from_seconds(replica.injected_network_seconds()));
  context.enter(StepPhase::kOptimizer);
  EVENKEEL_TRY(check_count(plan, sums));
  if (sums.skipped > 0) EVENKEEL_TRY(share_what_was_skipped(context, taken.skipped_ids, sums.skipped));
  EVENKEEL_ASSIGN(const Replica::Applied applied, replica.apply(plan, sums));
  context.enter(StepPhase::kOther);

  contract::Commit commit;
  commit.step = plan.step;
  // Skipped records are committed as such: they are done with.
  commit.samples = taken.consumed + taken.skipped;
  commit.reduced_count = sums.count + sums.skipped;
  commit.ids_hash = taken.id_hash;
  commit.skipped_ids = taken.skipped_ids;
  commit.reduced_ids_hash = sums.ids_hash;
  commit.loss_sum = sums.loss;
  commit.correct = static_cast<double>(sums.correct);
  commit.learning_rate = applied.learning_rate;
  commit.gradient_norm = applied.gradient_norm;
  commit.work = replica.work_of(taken);
  commit.own_gradient_square = own_square;
  if (own_square > 0) commit.reduced_gradient_square = applied.mean_square;
  return commit;
}

Result<EvaluationSums> run_evaluation(const StepContext& context) {
  context.enter(StepPhase::kEval);
  const std::int64_t samples = context.replica.eval_samples();
  const std::int64_t rank = context.collective.rank();
  const std::int64_t size = context.collective.size();
  EVENKEEL_ASSIGN(const EvaluationSums own,
                  context.replica.evaluate(samples * rank / size, samples * (rank + 1) / size));
  Result<EvaluationSums> sums = reduce_evaluation(context.collective, own);
  context.enter(StepPhase::kOther);
  return sums;
}

}  // namespace evenkeel::trainer
