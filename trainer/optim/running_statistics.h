// Running mean and variance of batch normalisation: moved once for each committed step towards the step's
// count-weighted mean over all groups of all ranks, so a step that is run again counts once. Called by the
// loop after the reduction. Pure.
#pragma once

#include <span>

#include "trainer/graph/plan.h"

namespace evenkeel::trainer {

// parameter_arena, gradient_arena: arenas 1 and 3 to their ends, the latter holding sums over all ranks.
// running = (1 - momentum) * running + momentum * (sum / count). A count of 0 leaves it alone: no sample, or,
// for the variance, no group of more than one value.
void update_running_statistics(const Plan& plan, std::span<float> parameter_arena,
                               std::span<const float> gradient_arena);

}  // namespace evenkeel::trainer
