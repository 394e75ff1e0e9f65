// The smallest merge patch from the stored status to the wanted one, and a shorter status for a server that
// finds it too large. Pure.
#pragma once

#include "base/json.h"

namespace evenkeel::oper {

// An empty object if nothing differs. Members that vanish become null; lists are replaced as a whole.
base::Json merge_difference(const base::Json& from, const base::Json& to);

// The same phase, counters and results with short messages and without the per-replica list's tail.
base::Json shorter_status(const base::Json& status);

}  // namespace evenkeel::oper
