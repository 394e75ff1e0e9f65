// Shared by the sources of Coordination (coordination.h), and by nobody else.
#pragma once

#include <string>

#include "contract/exit_codes.h"

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

}  // namespace evenkeel::trainer
