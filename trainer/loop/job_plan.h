// What a job will compute, as text: steps and shares, the compiled plan of the largest share with its arenas,
// buckets and FLOP, traffic of a step. For `evenkeel-trainer plan`; nothing but the data set is allocated for
// it.
#pragma once

#include <string>

#include "base/files.h"
#include "base/result.h"
#include "contract/job/spec.h"

namespace evenkeel::trainer {

base::Result<std::string> describe_job(base::Files& files, const contract::TrainingJobSpec& spec);

}  // namespace evenkeel::trainer
