// The phase of a job that is neither over nor suspended. It tells the truth: Running is said by the
// coordinator's report, never guessed from pods. Called by reconcile. Pure.
#pragma once

#include <optional>
#include <vector>

#include "contract/report.h"
#include "operator/reconcile/children.h"
#include "operator/reconcile/status.h"

namespace evenkeel::oper {

// The report, if it is of this job and attempt; a late one of an earlier attempt says nothing.
std::optional<contract::JobReport> report_of_attempt(const std::optional<contract::JobReport>& report,
                                                     const std::string& job_uid, std::int64_t attempt);

// `before`: the phase as stored. Running lasts until an incident, whether reports arrive or not; Restarting
// until all ranks have joined again.
Phase next_phase(Phase before, const std::vector<Pod>& pods,
                 const std::optional<contract::JobReport>& report);

}  // namespace evenkeel::oper
