// The conditions of a job: one of each type, sorted, the time of transition kept while the status stays.
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/json.h"
#include "base/time_text.h"

namespace evenkeel::oper {

using base::Json;
using base::WallTimeValue;

inline constexpr char kConditionAccepted[] = "Accepted";
inline constexpr char kConditionPodsReady[] = "PodsReady";
inline constexpr char kConditionRunning[] = "Running";
inline constexpr char kConditionRestarting[] = "Restarting";
inline constexpr char kConditionSuspended[] = "Suspended";
inline constexpr char kConditionComplete[] = "Complete";
inline constexpr char kConditionFailed[] = "Failed";
inline constexpr char kConditionBalanced[] = "Balanced";
inline constexpr char kConditionNameConflict[] = "NameConflict";

struct Condition {
  bool status = false;
  std::string reason;  // CamelCase, never empty
  std::string message;
  std::string last_transition_time;  // as stored: never parsed, so never changed
  std::int64_t observed_generation = 0;
};

using Conditions = std::map<std::string, Condition>;

Conditions decode_conditions(const Json& list);
Json to_json(const Conditions& conditions);

struct ConditionText {
  bool status = false;
  std::string reason;
  std::string message;
};

// Sets one condition. Its transition time moves only if the status changes. The message is made to fit.
void set_condition(Conditions& conditions, const char* type, const ConditionText& text,
                   std::int64_t generation, WallTimeValue now);

bool is_true(const Conditions& conditions, const char* type);
// Empty if there is no such condition.
std::string reason_of(const Conditions& conditions, const char* type);

}  // namespace evenkeel::oper
