// Names, labels and owners of a job's children, and how to recognise them again. Called by render and
// reconcile. Pure.
#pragma once

#include <string>

#include "base/json.h"
#include "contract/job/spec.h"
#include "operator/plan/plan.h"

namespace evenkeel::oper {

using base::Json;

// metadata of a child: name, namespace, our labels, the controller reference. attempt 0: a child of all
// attempts.
Json child_metadata(const contract::ObjectMeta& job, const std::string& name, std::int64_t attempt);

// True if the child's controller is the job with this UID.
bool is_controlled_by(const Json& object, const std::string& job_uid);

// "training.evenkeel.dev/job-uid=...,training.evenkeel.dev/role=worker": status.workers.selector.
std::string worker_selector(const std::string& job_uid);

}  // namespace evenkeel::oper
