#include "operator/reconcile/text.h"

#include <chrono>

namespace evenkeel::oper {

std::string fit_text(const std::string& text, std::size_t max_bytes) {
  // Dumping replaces what is not UTF-8; parsing the literal back gives the clean text.
  const std::string literal = base::dump_json(base::Json(text));
  const auto parsed = base::parse_json(literal);
  std::string clean = parsed.ok() && parsed->is_string() ? parsed->get<std::string>() : "";
  for (char& c : clean) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  if (clean.size() <= max_bytes) return clean;
  std::size_t end = max_bytes > 3 ? max_bytes - 3 : 0;
  while (end > 0 && (static_cast<unsigned char>(clean[end]) & 0xC0) == 0x80) --end;
  return clean.substr(0, end) + "...";
}

base::WallTimeValue floor_second(base::WallTimeValue time) {
  return std::chrono::floor<std::chrono::seconds>(time);
}
base::WallTimeValue ceil_second(base::WallTimeValue time) {
  return std::chrono::ceil<std::chrono::seconds>(time);
}

}  // namespace evenkeel::oper
