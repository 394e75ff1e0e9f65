// Station 4, the objects beside the pods: Service, ConfigMap, Secret. Called by operator/reconcile. Pure.
#pragma once

#include "base/json.h"
#include "contract/job/spec.h"
#include "operator/plan/plan.h"

namespace evenkeel::oper {

using base::Json;

// Headless: gives every current pod its name, ready or not.
Json render_service(const contract::TrainingJob& job, const JobPlan& plan);
// trainer.json of one attempt; immutable, because an attempt never changes its configuration.
Json render_config_map(const contract::TrainingJob& job, const JobPlan& plan);
// How many workers are wanted now: the one number that changes within an attempt. Only the coordinator of a
// scalable job mounts it. REQUIRES: plan.wanted_map is not empty.
Json render_wanted_map(const contract::TrainingJob& job, const JobPlan& plan);
// The job's key. data.key is "": pure code has no random numbers, so operator/act fills in 32 random bytes
// (base64) before the POST. It is created and never read back.
Json render_secret(const contract::TrainingJob& job, const JobPlan& plan);

}  // namespace evenkeel::oper
