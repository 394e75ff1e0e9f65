#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>

#include "base/time_text.h"

namespace evenkeel::base {
namespace {

struct State {
  std::mutex mutex;
  bool ready = false;
  LogLevel level = LogLevel::kInfo;
  Json common = Json::object();
  // Written in one piece and flushed: a line of a program that dies next is not lost.
  std::shared_ptr<spdlog::logger> out;
};

State& state() {
  static State* const state = new State;  // never destroyed: destructors of other statics may still log
  return *state;
}

const char* name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "error";
}

std::string now_text() {
  const WallTimeValue now = std::chrono::system_clock::now();
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::string text = to_rfc3339(now);
  text.pop_back();  // Z
  std::array<char, 16> part;
  std::snprintf(part.data(), part.size(), ".%03dZ", static_cast<int>(ms));
  return text + part.data();
}

// A field must not replace what every line has.
std::string safe_key(const std::string& key) {
  return key == "time" || key == "level" || key == "message" ? key + "_" : key;
}

std::string plain_line(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  std::string line = std::string(name_of(level)) + ": " + std::string(message);
  for (const auto& [key, value] : fields) line += " " + key + "=" + dump_json(value);
  return line;
}

}  // namespace

void init_log(LogLevel level, std::initializer_list<LogField> common) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.level = level;
  s.common = Json::object();
  for (const auto& [key, value] : common) s.common[safe_key(key)] = value;
  if (!s.out) {
    s.out = std::make_shared<spdlog::logger>("evenkeel", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    s.out->set_pattern("%v");
    s.out->set_level(spdlog::level::trace);  // we have judged the level already
    s.out->flush_on(spdlog::level::trace);
  }
  s.ready = true;
}

void add_common_log_field(std::string key, Json value) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.common[safe_key(key)] = std::move(value);
}

void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (level < s.level) return;
  if (!s.ready) {
    std::fputs((plain_line(level, message, fields) + "\n").c_str(), stderr);
    return;
  }
  Json line = Json::object();
  line["time"] = now_text();
  line["level"] = name_of(level);
  line["message"] = std::string(message);
  for (const auto& [key, value] : s.common.items()) line[key] = value;
  for (const auto& [key, value] : fields) line[safe_key(key)] = value;
  s.out->log(spdlog::level::info, spdlog::string_view_t(dump_json(line)));
}

}  // namespace evenkeel::base
