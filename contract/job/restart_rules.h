// What a job's own rules say about an exit code: one reading for the coordinator, trainer/local and whoever
// replaces pods. Pure.
#pragma once

#include "contract/job/spec.h"

namespace evenkeel::contract {

// The action of the first rule of restart.rules that names the code; kRestart where none does.
RestartAction action_for(const RestartSpec& restart, int exit_code);

}  // namespace evenkeel::contract
