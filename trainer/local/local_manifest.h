// A manifest as it is run on this machine: the options of the command line written over it, then judged like
// any other. Called by run_local. Pure.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "contract/job/spec.h"
#include "trainer/local/local_options.h"

namespace evenkeel::trainer {

// kInvalidInput with field paths.
base::Result<contract::TrainingJob> local_job(base::Json manifest, const LocalOptions& options);

// CPU limit of a worker in cores, by workers.resources and workers.overrides; 0: none.
double cpu_limit_of(const contract::TrainingJobSpec& spec, int replica);

}  // namespace evenkeel::trainer
