// spec.suspend: no children but the key, and how the job comes back. Called by reconcile. Pure.
#pragma once

#include "operator/reconcile/turn.h"

namespace evenkeel::oper {

// The phase is written before the first pod is deleted, so that no later look takes those deletions for
// failures.
void suspend(Turn& turn);

// A new attempt from the spec as it is now; the old pods, if some are left, must be gone first.
void resume(Turn& turn);

}  // namespace evenkeel::oper
