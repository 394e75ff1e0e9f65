// Shared by the sources of Coordination (coordination.h), and by nobody else.
#pragma once

#include <string>

#include "contract/exit_codes.h"
#include "contract/job/spec.h"
#include "contract/messages.h"
#include "trainer/coordinator/ledger.h"

namespace evenkeel::trainer {

// A broken ring or a failing neighbour is mostly the echo of a death that is about to be noticed: wait this long
// for the cause.
inline constexpr double kSettleSeconds = 0.5;

constexpr int code(contract::ExitCode exit_code) {
  return static_cast<int>(exit_code);
}

// Enough of a hash to compare by eye.
inline std::string short_hash(const std::string& hash) {
  return hash.substr(0, 12);
}

Dealing dealing_of(contract::ShardingPolicy policy, const contract::Join& join);

}  // namespace evenkeel::trainer
