// Structured log: one JSON object a line on standard error, {"time", "level", "message", fields...}.
// Thread safe. Set up once in main; before that lines go to standard error as they are.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"

namespace evenkeel::base {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
using LogField = std::pair<std::string, Json>;

// Fields that every later line carries, e.g. {"rank", 3}. Program start only.
void init_log(LogLevel level, std::initializer_list<LogField> common);
void add_common_log_field(std::string key, Json value);

void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});
inline void log_debug(std::string_view m, std::initializer_list<LogField> f = {}) {
  log(LogLevel::kDebug, m, f);
}
inline void log_info(std::string_view m, std::initializer_list<LogField> f = {}) {
  log(LogLevel::kInfo, m, f);
}
inline void log_warning(std::string_view m, std::initializer_list<LogField> f = {}) {
  log(LogLevel::kWarning, m, f);
}
inline void log_error(std::string_view m, std::initializer_list<LogField> f = {}) {
  log(LogLevel::kError, m, f);
}

}  // namespace evenkeel::base
