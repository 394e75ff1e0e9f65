// Resources of one pod: the group's, with an override laid over them and the devices filled in. Called by
// pod.cpp. Pure.
#pragma once

#include "base/json.h"
#include "contract/job/spec.h"

namespace evenkeel::oper {

using base::Json;

// Member by member. A request of the group that the override's limit no longer allows is lowered to that
// limit: the API server would refuse the pod otherwise.
Json merge_resources(const Json& group, const Json& over);

// The resources of worker `rank`: group, overrides in their order, nvidia.com/gpu for cuda.
Json worker_resources(const contract::WorkersSpec& workers, int rank);

}  // namespace evenkeel::oper
