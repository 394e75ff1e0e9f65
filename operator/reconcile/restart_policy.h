// What follows from an incident: spec.restart as a function. Called by reconcile. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "contract/job/spec.h"
#include "operator/reconcile/failure.h"
#include "operator/reconcile/status.h"

namespace evenkeel::oper {

struct Verdict {
  contract::RestartAction action = contract::RestartAction::kRestart;
  std::size_t culprit = 0;  // index among the failures
  std::string because;      // the rule, in words
};

// The first rule that any of the failures matches decides: a rank that exits 75 because another one met bad
// data must not hide the 65. Without a match: Restart. REQUIRES: failures is not empty.
Verdict judge(const contract::RestartSpec& restart, const std::vector<Failure>& failures);

// Ranks that lost a peer (75) are often seen before the peer: until when to wait for the pod that is the
// cause. Nothing if the failures say enough already.
std::optional<WallTimeValue> wait_for_cause(const std::vector<Failure>& failures,
                                            const std::vector<Pod>& pods, WallTimeValue now);

// The wait before a restart that follows `restarts_before` others: 0, 1 s, 2 s, ... 300 s. A job that has run
// well for ten minutes starts again at once.
std::chrono::seconds restart_delay(std::int64_t restarts_before, std::optional<WallTimeValue> running_since,
                                   WallTimeValue now);

}  // namespace evenkeel::oper
