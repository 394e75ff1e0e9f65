#include "contract/job/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

namespace evenkeel::contract {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

Error bad_quantity(std::string_view text, const char* why) {
  return Error{ErrorCode::kInvalidInput,
               "quantity \"" + std::string(text) + "\" " + why +
                   "; write a number with an optional suffix, e.g. 4, 500m, 1.5, 512Mi or 32Gi"};
}

constexpr std::array<std::pair<std::string_view, double>, 16> kSuffixes{{
    {"", 1.0},
    {"n", 1e-9},
    {"u", 1e-6},
    {"m", 1e-3},
    {"k", 1e3},
    {"M", 1e6},
    {"G", 1e9},
    {"T", 1e12},
    {"P", 1e15},
    {"E", 1e18},
    {"Ki", 1024.0},
    {"Mi", 1048576.0},
    {"Gi", 1073741824.0},
    {"Ti", 1099511627776.0},
    {"Pi", 1125899906842624.0},
    {"Ei", 1152921504606846976.0},
}};

// "e3", "E-2": the decimal exponent form. Up to three digits, so that the result stays a finite double or is
// refused.
bool read_exponent(std::string_view suffix, double* scale) {
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return false;
  std::string_view digits = suffix.substr(1);
  bool negative = digits[0] == '-';
  if (digits[0] == '+' || digits[0] == '-') digits.remove_prefix(1);
  int exponent = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  if (digits.empty() || digits[0] == '-' || error != std::errc() || end != digits.data() + digits.size())
    return false;
  if (exponent > 300) return false;
  *scale = std::pow(10.0, negative ? -exponent : exponent);
  return true;
}

bool read_suffix(std::string_view suffix, double* scale) {
  for (const auto& [name, value] : kSuffixes) {
    if (suffix == name) {
      *scale = value;
      return true;
    }
  }
  return read_exponent(suffix, scale);
}

Result<std::int64_t> rounded_up(const Json& value, double factor) {
  EVENKEEL_ASSIGN(double amount, parse_quantity(value));
  const double scaled = amount * factor;
  // 0.1 * 1000 is a hair above 100: the hair is the double's, not the user's.
  const double up = std::ceil(scaled - std::max(1.0, scaled) * 1e-12);
  if (up > 9007199254740992.0) return bad_quantity(base::dump_json(value), "is too large");
  return static_cast<std::int64_t>(up);
}

}  // namespace

Result<double> parse_quantity(std::string_view text) {
  if (text.size() > 64) return bad_quantity(text.substr(0, 64), "is too long");
  std::size_t length = 0;
  std::size_t dots = 0;
  while (length < text.size() && ((text[length] >= '0' && text[length] <= '9') || text[length] == '.')) {
    dots += text[length] == '.';
    ++length;
  }
  if (length == dots || dots > 1) return bad_quantity(text, "is not a quantity");
  double amount = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + length, amount, std::chars_format::fixed);
  double scale = 1;
  if (parsed.ec != std::errc() || !read_suffix(text.substr(length), &scale))
    return bad_quantity(text, "is not a quantity");
  if (!std::isfinite(amount * scale)) return bad_quantity(text, "is too large");
  return amount * scale;
}

Result<double> parse_quantity(const Json& value) {
  if (value.is_string()) return parse_quantity(std::string_view(value.get_ref<const std::string&>()));
  if (value.is_number_integer() && value >= 0) return value.get<double>();
  return bad_quantity(base::dump_json(value), "is neither a text nor a whole number");
}

Result<std::int64_t> quantity_milli_cores(const Json& value) {
  return rounded_up(value, 1000.0);
}
Result<std::int64_t> quantity_bytes(const Json& value) {
  return rounded_up(value, 1.0);
}

}  // namespace evenkeel::contract
