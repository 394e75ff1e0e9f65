// A short look at machines, network and numbers before the first step of a job: all ranks of a group run the
// same script in step with each other. Nothing of it is kept but the findings: no sample counts as consumed,
// and weights and optimizer are afterwards what they were, bit for bit. Called by the worker between the
// restored state and Ready, on the loop's thread.
//
//   1. an all-reduce of known integers: exact, or the job does not begin
//   2. the speed of an all-reduce of a bucket and of others in size, and of one hop
//   3. steps of all ranks without any reduction: what each rank needs for its share, with data as in training and
//      with the same samples again and again
//   4. the rank of median speed alone, the others waiting: the baseline of the waterfall
//   5. loss and gradient of all ranks together against those of that one rank alone
#pragma once

#include <cstdint>

#include "base/result.h"
#include "contract/messages.h"
#include "trainer/loop/training_step.h"

namespace evenkeel::trainer {

struct PreflightOptions {
  std::int64_t train_samples = 1;
  std::int64_t group_samples = 1;      // a step of the job over all ranks
  std::int64_t reference_samples = 1;  // a step of the same job with one rank
  std::int64_t granule = 1;
  bool comparable = true;    // the sums of a step do not depend on who computes which sample
  bool alone = true;         // a rank can compute alone: it exchanges nothing during forward and backward
  double budget_seconds = 30;  // steps 3 and 4 are cut short, and 4 left out, where they would take longer
};

PreflightOptions preflight_options(const contract::TrainingJobSpec& spec, std::int64_t train_samples);

// The same on all ranks. kNumerical: a check failed, named in the message; the job must not begin.
base::Result<contract::Preflight> run_preflight(const StepContext& context, const PreflightOptions& options);

}  // namespace evenkeel::trainer
