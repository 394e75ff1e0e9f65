// The learning rate of a step: base rate x schedule x factor for the batch size. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "contract/job/spec.h"

namespace evenkeel::trainer {

// The batch that the user's learning rate was meant for: b (per replica) where batch.perReplica is given,
// else G at creation, so that a job runs at its own rate until its batch changes.
std::int64_t base_batch(const contract::TrainingSpec& training, std::int64_t global_batch_at_creation);

// k of G_now / B0: Linear k, Sqrt sqrt(k), None 1; Auto = Linear for SGD. kUnsupported for an optimizer
// without a rule.
base::Result<double> batch_factor(contract::LearningRateScaling scaling, const std::string& optimizer_type,
                                  std::int64_t global_batch, std::int64_t base_batch);

// Position in a schedule: samples committed / samples planned, in [0, 1], so that a resize does not stretch
// it.
base::Result<double> scheduled_rate(contract::Schedule schedule, double base_rate, double position);

// The rate of a step. global_batch: G of the job now (not of a short last step).
base::Result<double> learning_rate(const contract::TrainingSpec& training, std::int64_t global_batch,
                                   std::int64_t global_batch_at_creation, double position);

}  // namespace evenkeel::trainer
