// Small words that several policies share. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "base/json.h"
#include "base/time_text.h"
#include "contract/job/json_same.h"

namespace evenkeel::oper {

inline constexpr std::size_t kMaxMessageBytes = 1024;

// Valid UTF-8 of at most `max_bytes`, control characters as spaces; "..." where it was cut.
std::string fit_text(const std::string& text, std::size_t max_bytes = kMaxMessageBytes);

using contract::same_json;

// The next whole second: times in status have no fractions, and a wait must not end early.
base::WallTimeValue ceil_second(base::WallTimeValue time);
base::WallTimeValue floor_second(base::WallTimeValue time);

}  // namespace evenkeel::oper
