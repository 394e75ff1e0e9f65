// spec.deadlines: clocks that stop while the job is suspended. Called by reconcile. Pure.
#pragma once

#include <optional>

#include "contract/job/spec.h"
#include "operator/reconcile/conditions.h"
#include "operator/reconcile/status.h"
#include "operator/reconcile/wake.h"

namespace evenkeel::oper {

// The condition Failed, if a deadline has passed; else `wake` is told when the next one will. `before`: as
// stored, which says how the time until now is to be counted; `status`: as it will be.
std::optional<ConditionText> passed_deadline(const contract::TrainingJobSpec& spec, const JobStatus& before,
                                             const JobStatus& status, WallTimeValue now, Wake& wake);

}  // namespace evenkeel::oper
