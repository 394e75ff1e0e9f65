// The learning rate of a step: base rate x schedule x factor for the batch size, after a warm-up. Counted in
// samples, never in steps, so that a change of the batch neither stretches nor shortens the course. Pure
// functions.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "contract/job/spec.h"

namespace evenkeel::trainer {

// The batch that the user's learning rate was meant for: b (per replica) where batch.perReplica is given,
// else G at creation, so that a job runs at its own rate until its batch changes.
std::int64_t base_batch(const contract::TrainingSpec& training, std::int64_t global_batch_at_creation);

// k of G_now / B0: Linear k, Sqrt sqrt(k), None 1; Auto = Linear for sgd and lars, Sqrt for adam and adamw.
// kUnsupported for an optimizer without a rule.
base::Result<double> batch_factor(contract::LearningRateScaling scaling, const std::string& optimizer_type,
                                  double global_batch, std::int64_t base_batch);

struct RatePosition {
  std::int64_t samples_done = 0;     // committed before this step, since the job began
  std::int64_t step_samples = 0;     // of this step, over all ranks
  std::int64_t samples_planned = 0;  // of the whole job
  std::int64_t train_samples = 0;    // of an epoch
  double global_batch = 0;           // G that the rate is for (StepPlan::rate_batch)
  std::int64_t global_batch_at_creation = 0;
};

base::Result<double> learning_rate(const contract::TrainingSpec& training, const RatePosition& position);

// Where the batch, and with it the rate, is another than in the update before: rate of now over what it would be
// for the batch of before, at the same place of the course (Goyal et al., 2017). Velocity that holds the rate is
// multiplied by it once, so that old gradients count with the new rate too. 1 where nothing has changed, or the
// batch of before is not known (0).
base::Result<double> momentum_correction(const contract::TrainingSpec& training, const RatePosition& position,
                                         double global_batch_before);

}  // namespace evenkeel::trainer
