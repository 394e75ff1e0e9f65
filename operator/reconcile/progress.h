// The coordinator's report as the shown part of the status: progress, balance, diagnosis, replicas. Numbers
// are rounded so that columns read well and equal reports make equal statuses. Called by reconcile. Pure.
#pragma once

#include <vector>

#include "contract/report.h"
#include "operator/reconcile/children.h"
#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/status.h"

namespace evenkeel::oper {

// REQUIRES: a report of this job and attempt. While the ranks still gather it has no numbers of its own, and
// those of the attempt before stay.
void apply_report(JobStatus& status, const contract::JobReport& report, const std::vector<Pod>& pods,
                  WallTimeValue now);

// RemedyApplied and RemedyReverted, for what status.diagnosis `after` knows more than the stored one: since both are
// in the status, each is told once, also by an operator that has just begun.
std::vector<EventNote> remedy_events(const Json& before, const Json& after);

// The condition Balanced: False while a rank is slower than `threshold` (with a margin against flapping).
// Nothing where nothing has been measured.
std::optional<ConditionText> judge_balance(const contract::JobReport& report, double threshold,
                                           bool is_balanced_now);

}  // namespace evenkeel::oper
