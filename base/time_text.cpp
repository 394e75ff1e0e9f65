#include "base/time_text.h"

#include <array>
#include <cstdio>
#include <cstdlib>

namespace evenkeel::base {
namespace {

using std::chrono::nanoseconds;

// Walks over a text of fixed shape; the first mismatch makes every later step fail.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  int digits(int count) {
    int value = 0;
    for (int i = 0; i < count; ++i) {
      if (!peek_digit()) return fail();
      value = value * 10 + (text_[pos_++] - '0');
    }
    return value;
  }

  // One of the characters of `any`.
  char take(std::string_view any) {
    if (pos_ < text_.size() && any.find(text_[pos_]) != std::string_view::npos) return text_[pos_++];
    fail();
    return 0;
  }

  bool peek(char c) const { return pos_ < text_.size() && text_[pos_] == c; }
  bool peek_digit() const { return pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '9'; }
  bool done() const { return ok_ && pos_ == text_.size(); }
  int fail() {
    ok_ = false;
    return 0;
  }

 private:
  std::string_view text_;
  std::size_t pos_ = 0;
  bool ok_ = true;
};

// ".123456789..." as nanoseconds; digits past the ninth are cut.
nanoseconds fraction(Cursor& cursor) {
  if (!cursor.peek('.')) return nanoseconds(0);
  cursor.take(".");
  if (!cursor.peek_digit()) cursor.fail();
  std::int64_t value = 0;
  std::int64_t unit = 100'000'000;
  while (cursor.peek_digit()) {
    value += cursor.digits(1) * unit;
    unit /= 10;
  }
  return nanoseconds(value);
}

std::chrono::minutes zone(Cursor& cursor) {
  const char sign = cursor.take("Zz+-");
  if (sign != '+' && sign != '-') return std::chrono::minutes(0);
  const int hours = cursor.digits(2);
  cursor.take(":");
  const int minutes = cursor.digits(2);
  if (hours > 23 || minutes > 59) cursor.fail();
  return std::chrono::minutes((sign == '-' ? -1 : 1) * (hours * 60 + minutes));
}

}  // namespace

std::string to_rfc3339(WallTimeValue time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const auto day = std::chrono::floor<std::chrono::days>(whole);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(whole - day);
  std::array<char, 48> text;
  const int length =
      std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
                    static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                    static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                    static_cast<int>(clock.seconds().count()));
  return std::string(text.data(), static_cast<std::size_t>(length));
}

Result<WallTimeValue> parse_rfc3339(std::string_view text) {
  Cursor cursor(text);
  const int year = cursor.digits(4);
  cursor.take("-");
  const int month = cursor.digits(2);
  cursor.take("-");
  const int day = cursor.digits(2);
  cursor.take("Tt");
  const int hour = cursor.digits(2);
  cursor.take(":");
  const int minute = cursor.digits(2);
  cursor.take(":");
  const int second = cursor.digits(2);
  const nanoseconds part = fraction(cursor);
  const std::chrono::minutes offset = zone(cursor);

  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  // 1678 to 2261 is what 64 bits of nanoseconds hold.
  const bool in_range = year >= 1678 && year <= 2261 && hour <= 23 && minute <= 59 && second <= 59;
  if (!cursor.done() || !date.ok() || !in_range) {
    return Error{ErrorCode::kInvalidInput,
                 "\"" + std::string(text.substr(0, 64)) +
                     "\" is not a time: write it as 2026-11-30T18:20:00Z (RFC 3339)"};
  }
  const auto whole = std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
                     std::chrono::seconds(second) - offset;
  return WallTimeValue(whole) + part;
}

std::string human_duration(std::chrono::nanoseconds duration) {
  // Counted in seconds before the sign is taken off: the most negative value has no positive twin.
  const std::int64_t total = std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  const std::int64_t s = std::llabs(total);
  std::int64_t big = s, small = 0;
  char big_unit = 's', small_unit = 0;
  if (s >= 86400) {
    big = s / 86400, small = s % 86400 / 3600, big_unit = 'd', small_unit = 'h';
  } else if (s >= 3600) {
    big = s / 3600, small = s % 3600 / 60, big_unit = 'h', small_unit = 'm';
  } else if (s >= 600) {
    big = s / 60, big_unit = 'm';
  } else if (s >= 60) {
    big = s / 60, small = s % 60, big_unit = 'm', small_unit = 's';
  }
  std::array<char, 48> text;
  int length = std::snprintf(text.data(), text.size(), "%s%lld%c", total < 0 ? "-" : "",
                             static_cast<long long>(big), big_unit);
  std::string result(text.data(), static_cast<std::size_t>(length));
  if (small == 0) return result;
  length = std::snprintf(text.data(), text.size(), "%02lld%c", static_cast<long long>(small), small_unit);
  return result.append(text.data(), static_cast<std::size_t>(length));
}

}  // namespace evenkeel::base
