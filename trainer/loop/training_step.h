// One step of one rank: read, forward, backward, reduce, update, in the order that training-semantics fix;
// and the evaluation. What the loop (worker.h) and the tests run. One thread.
#pragma once

#include "base/result.h"
#include "contract/messages.h"
#include "trainer/collectives/collective.h"
#include "trainer/loop/replica.h"
#include "trainer/loop/step_timer.h"
#include "trainer/strategy/gradient_reduction.h"

namespace evenkeel::trainer {

// Told of every change, so that heartbeats say what the rank is doing.
using PhaseObserver = std::function<void(StepPhase)>;

// What a step needs; made once for each communicator.
struct StepContext {
  Replica& replica;
  int rank;  // whose share of a plan is taken; not always the position in the collective
  Collective& collective;
  GradientReduction& reduction;
  StepTimer& timer;
  PhaseObserver observe;  // may be empty
  void enter(StepPhase phase) const {
    timer.enter(phase);
    if (observe) observe(phase);
  }
};

// Forward and backward of the share that was read, micro-batch after micro-batch; the gradients' buckets are handed to
// `reduction` as they get ready. `enter`: told of each phase; may be empty.
base::Result<StepSums> compute_share(Replica& replica, GradientReduction& reduction, const PhaseObserver& enter = {});

// The commit of the step, but for fence and times (the caller takes them from the timer) and counters of the
// collectives. kNumerical: the step gave NaN or infinity, on all ranks alike, and the weights are those of
// the step before. kInternal: the reduced count is not what was planned.
base::Result<contract::Commit> run_step(const StepContext& context, const contract::StepPlan& plan);

// This rank's even slice of the evaluation set, summed over all ranks.
base::Result<EvaluationSums> run_evaluation(const StepContext& context);

}  // namespace evenkeel::trainer
