// Station 4: one pod of the plan as a Kubernetes object. It passes PodSecurity "restricted", and what the
// operator decides (labels, env, mounts, security) wins over what the job asks for. Called by
// operator/reconcile. Pure.
#pragma once

#include <string>

#include "base/json.h"
#include "contract/job/spec.h"
#include "operator/plan/plan.h"

namespace evenkeel::oper {

using base::Json;

struct PodDefaults {
  std::string image;                  // where spec.workers.image is empty
  Json pod_options = Json::object();  // the chart's: pull secrets, tolerations, ...; the job's lie over them
};

Json render_pod(const contract::TrainingJob& job, const JobPlan& plan, const PodPlan& pod,
                const PodDefaults& defaults);

}  // namespace evenkeel::oper
