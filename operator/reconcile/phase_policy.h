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

// Scope Worker: how many of these pods the report names as members of today. A report that is older than a
// replacement names its predecessor, and so counts it out.
int joined_workers(const std::vector<Pod>& pods, const contract::JobReport& report, int ranks_per_pod);
bool takes_part(const contract::ReplicaReport& replica);

// The same, with the size of a job that may be scalable. Running: that many have joined. An incident: all
// that can be there; one that finds no node is not waited for, if the others are enough.
struct JobSize {
  int workers = 1;  // wanted
  int least = 1;    // minReplicas, or workers
  int ranks_per_pod = 1;
};
Phase next_phase(Phase before, const std::vector<Pod>& pods, const std::optional<contract::JobReport>& report,
                 const JobSize& size);

}  // namespace evenkeel::oper
