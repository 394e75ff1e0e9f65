#include "trainer/loop/training_step.h"

#include <string>

#include "base/clock.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

// A step whose sum holds other samples than planned must not become weights.
base::Status check_count(const contract::StepPlan& plan, const ReducedSums& sums) {
  if (sums.count + sums.skipped == plan.planned()) return {};
  return Error{ErrorCode::kInternal, "step " + std::to_string(plan.step) + ": the reduced gradient holds " +
                                         std::to_string(sums.count) + " samples and " +
                                         std::to_string(sums.skipped) + " skipped ones, planned were " +
                                         std::to_string(plan.planned())};
}

// Forward and backward of the share that was read, micro-batch after micro-batch.
Result<StepSums> compute(const StepContext& context) {
  StepSums sums;
  for (int micro = 0; micro < context.replica.micro_batches(); ++micro) {
    context.enter(StepPhase::kForward);
    EVENKEEL_ASSIGN(const StepSums part, context.replica.forward(micro));
    sums.loss += part.loss;
    sums.count += part.count;
    sums.correct += part.correct;
    context.enter(StepPhase::kBackward);
    EVENKEEL_TRY(context.replica.backward(micro, context.reduction));
  }
  return sums;
}

}  // namespace

Result<contract::Commit> run_step(const StepContext& context, const contract::StepPlan& plan) {
  Replica& replica = context.replica;
  const auto rank = static_cast<std::size_t>(context.rank);

  replica.inject_for_step(plan.step);
  context.enter(StepPhase::kInputWait);
  EVENKEEL_ASSIGN(const BatchTaken taken,
                  replica.read_share(plan.epoch, plan.cuts[rank], plan.cuts[rank + 1]));
  EVENKEEL_ASSIGN(StepSums own, compute(context));
  own.skipped = taken.skipped;
  own.ids_hash = taken.id_hash;
  context.enter(StepPhase::kCollectiveWait);
  FixedPointSums* const fixed = replica.fixed_sums();
  EVENKEEL_ASSIGN(const ReducedSums sums, fixed != nullptr ? context.reduction.reduce(plan.step, own, *fixed)
                                                           : context.reduction.reduce(plan.step, own));
  if (replica.injected_network_seconds() > 0)
    base::real_clock().sleep_for(base::from_seconds(replica.injected_network_seconds()));
  context.enter(StepPhase::kOptimizer);
  EVENKEEL_TRY(check_count(plan, sums));
  EVENKEEL_ASSIGN(const Replica::Applied applied, replica.apply(plan, sums));
  context.enter(StepPhase::kOther);

  contract::Commit commit;
  commit.step = plan.step;
  // Skipped records are committed as such: they are done with.
  commit.samples = taken.consumed + taken.skipped;
  commit.reduced_count = sums.count + sums.skipped;
  commit.ids_hash = taken.id_hash;
  commit.reduced_ids_hash = sums.ids_hash;
  commit.loss_sum = sums.loss;
  commit.correct = static_cast<double>(sums.correct);
  commit.learning_rate = applied.learning_rate;
  commit.gradient_norm = applied.gradient_norm;
  commit.work = replica.work_of(taken);
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
