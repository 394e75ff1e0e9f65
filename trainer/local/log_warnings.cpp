#include "trainer/local/log_warnings.h"

#include <algorithm>
#include <array>

#include "base/json.h"

namespace evenkeel::trainer {
namespace {

// The same in every line, or of no use to a person.
constexpr std::array<std::string_view, 7> kPassedOver = {"time", "level", "message", "job",
                                                         "rank", "code",  "exitCode"};

std::string text_of(const base::Json& line) {
  std::string details;
  for (const auto& [key, value] : line.items()) {
    if (std::find(kPassedOver.begin(), kPassedOver.end(), key) != kPassedOver.end()) continue;
    const std::string shown = value.is_string() ? value.get<std::string>() : base::dump_json(value);
    details += (details.empty() ? "" : ", ") + key + " " + shown;
  }
  return base::string_at(line, "message") + (details.empty() ? "" : " (" + details + ")");
}

}  // namespace

std::vector<std::string> warnings_of(std::string_view log, std::size_t most) {
  std::vector<std::string> found;
  while (!log.empty() && found.size() < most) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(line.size() + 1, log.size()));
    if (!line.starts_with('{')) continue;
    const auto json = base::parse_json(line);
    if (!json.ok()) continue;
    const std::string level = base::string_at(*json, "level");
    if (level != "warning" && level != "error") continue;
    std::string text = text_of(*json);
    if (std::find(found.begin(), found.end(), text) == found.end()) found.push_back(std::move(text));
  }
  return found;
}

}  // namespace evenkeel::trainer
