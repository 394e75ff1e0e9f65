// How a job ends, and what is left to do then: Succeeded and Failed are written first and never change, then
// comes clean-up, then the time to live. Called by reconcile. Pure.
#pragma once

#include "operator/reconcile/turn.h"

namespace evenkeel::oper {

// The coordinator of this attempt (or, while an incident is open, of the last one) ended with exit code 0.
const Pod* finished_coordinator(const Turn& turn);

void succeed(Turn& turn, const Pod& coordinator);
// `reason` and `message` become the condition Failed.
void fail(Turn& turn, const std::string& reason, const std::string& message);

// REQUIRES: a terminal phase. Requests for what podPolicy and ttlSecondsAfterFinished ask; nothing is ever
// created.
void clean_up(Turn& turn);

}  // namespace evenkeel::oper
