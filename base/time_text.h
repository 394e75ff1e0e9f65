// RFC 3339 text of wall times, as Kubernetes writes them ("2026-11-30T18:20:00Z"), and durations for people.
// Pure: takes no clock.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace evenkeel::base {

using WallTimeValue = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;

// Whole seconds, UTC, "Z".
std::string to_rfc3339(WallTimeValue time);

// Accepts fractions and offsets. Error: kInvalidInput with the text.
Result<WallTimeValue> parse_rfc3339(std::string_view text);

// "48s", "12m", "3h05m", "2d04h": at most two units.
std::string human_duration(std::chrono::nanoseconds duration);

}  // namespace evenkeel::base
