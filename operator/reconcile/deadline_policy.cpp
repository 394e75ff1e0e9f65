#include "operator/reconcile/deadline_policy.h"

#include "operator/reconcile/time_accounting.h"

namespace evenkeel::oper {
namespace {

// The wait for the first common step began when the job was made or last resumed: that is when Suspended
// became False.
std::optional<WallTimeValue> started(const JobStatus& status) {
  const auto suspended = status.conditions.find(kConditionSuspended);
  if (suspended == status.conditions.end()) return status.start_time;
  const auto time = base::parse_rfc3339(suspended->second.last_transition_time);
  return time.ok() ? std::optional(*time) : status.start_time;
}

}  // namespace

std::optional<ConditionText> passed_deadline(const contract::TrainingJobSpec& spec, const JobStatus& before,
                                             const JobStatus& status, WallTimeValue now, Wake& wake) {
  if (spec.active_deadline_seconds > 0) {
    const std::int64_t active = active_seconds(before, now);
    const std::int64_t left = spec.active_deadline_seconds - active;
    if (left <= 0) {
      return ConditionText{true, "DeadlineExceeded",
                           "the job was active for " + std::to_string(active) +
                               " s; deadlines.activeSeconds is " +
                               std::to_string(spec.active_deadline_seconds)};
    }
    wake.by(now + std::chrono::seconds(left));
  }
  const bool waiting = status.phase == Phase::kPending || status.phase == Phase::kStarting;
  const auto since = started(status);
  if (spec.start_deadline_seconds > 0 && waiting && since) {
    const WallTimeValue end = *since + std::chrono::seconds(spec.start_deadline_seconds);
    if (end <= now) {
      return ConditionText{true, "StartDeadlineExceeded",
                           "not all ranks joined within deadlines.startSeconds = " +
                               std::to_string(spec.start_deadline_seconds) + "; " +
                               (status.conditions.contains(kConditionPodsReady)
                                    ? status.conditions.at(kConditionPodsReady).message
                                    : "")};
    }
    wake.by(end);
  }
  return std::nullopt;
}

}  // namespace evenkeel::oper
