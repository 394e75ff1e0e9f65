// What is missing of an attempt, as requests in the order in which peers need it: key, Service,
// configuration, then the coordinator and the workers. Called by reconcile once nothing of an earlier attempt
// is left. Pure.
#pragma once

#include <vector>

#include "operator/reconcile/children.h"
#include "operator/reconcile/reconcile.h"

namespace evenkeel::oper {

std::vector<Request> missing_objects(const contract::TrainingJob& job, const JobPlan& plan,
                                     const Children& children, bool secret_made,
                                     const ReconcileOptions& options);

// Configurations of earlier attempts: no pod mounts them any more.
std::vector<Request> stale_config_maps(const JobPlan& plan, const Children& children);

// The Service as it should be, where somebody has edited it: the ranks would not find each other any more.
std::vector<Request> repaired_service(const contract::TrainingJob& job, const JobPlan& plan,
                                      const Children& children);

}  // namespace evenkeel::oper
