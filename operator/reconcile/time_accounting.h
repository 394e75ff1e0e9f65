// status.time: where the seconds of a job went. Every second since startTime is booked under one cause, when
// the status is written anyway. The sum of what is booked says up to when it is booked, so nothing else need
// be remembered and an operator that was away for an hour books that hour once. Called by reconcile. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "contract/report.h"
#include "operator/reconcile/status.h"

namespace evenkeel::oper {

// Not suspended, since the job began, up to now.
std::int64_t active_seconds(const JobStatus& status, WallTimeValue now);

// Books what has passed since the last booking: under the state that `before` describes, because that state
// lasted until now. While ranks step, the report's seconds say in which proportions.
Json book_time(const JobStatus& before, const std::optional<contract::JobReport>& report, WallTimeValue now);

}  // namespace evenkeel::oper
