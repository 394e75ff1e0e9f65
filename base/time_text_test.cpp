#include "base/time_text.h"

#include <gtest/gtest.h>

namespace evenkeel::base {
namespace {

using namespace std::chrono_literals;

WallTimeValue at(std::int64_t unix_seconds) {
  return WallTimeValue(std::chrono::seconds(unix_seconds));
}

TEST(TimeText, writes_whole_seconds_in_utc) {
  EXPECT_EQ(to_rfc3339(at(0)), "1970-01-01T00:00:00Z");
  EXPECT_EQ(to_rfc3339(at(1709164799)), "2024-02-28T23:59:59Z");
  EXPECT_EQ(to_rfc3339(at(1709164800)), "2024-02-29T00:00:00Z");
  EXPECT_EQ(to_rfc3339(at(1) + 999ms), "1970-01-01T00:00:01Z");
  EXPECT_EQ(to_rfc3339(at(0) - 1ms), "1969-12-31T23:59:59Z");
}

TEST(TimeText, reads_what_it_writes_and_fractions_and_offsets) {
  EXPECT_EQ(parse_rfc3339("2024-02-29T00:00:00Z").value(), at(1709164800));
  EXPECT_EQ(parse_rfc3339("2024-02-29t02:30:00+02:30").value(), at(1709164800));
  EXPECT_EQ(parse_rfc3339("2024-02-28T23:00:00-01:00").value(), at(1709164800));
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:00.25Z").value(), at(0) + 250ms);
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:00.1234567899z").value(), at(0) + 123456789ns);
}

TEST(TimeText, refuses_what_is_not_a_time_and_names_it) {
  for (const char* text :
       {"", "2024-02-29", "2024-02-30T00:00:00Z", "2023-02-29T00:00:00Z", "2024-13-01T00:00:00Z",
        "2024-01-01T24:00:00Z", "2024-01-01T00:60:00Z", "2024-01-01T00:00:61Z", "2024-01-01T00:00:00",
        "2024-01-01T00:00:00.Z", "2024-01-01T00:00:00+1:00", "2024-01-01T00:00:00Z ", "9999-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z", "2024-01-01 00:00:00Z", "+024-01-01T00:00:00Z"}) {
    const auto result = parse_rfc3339(text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidInput);
    EXPECT_NE(result.error().message.find(text), std::string::npos);
  }
}

TEST(TimeText, durations_show_at_most_two_units) {
  EXPECT_EQ(human_duration(0s), "0s");
  EXPECT_EQ(human_duration(999ms), "0s");
  EXPECT_EQ(human_duration(48s), "48s");
  EXPECT_EQ(human_duration(60s), "1m");
  EXPECT_EQ(human_duration(3min + 5s), "3m05s");
  EXPECT_EQ(human_duration(12min + 40s), "12m");
  EXPECT_EQ(human_duration(3h + 5min + 59s), "3h05m");
  EXPECT_EQ(human_duration(52h), "2d04h");
  EXPECT_EQ(human_duration(-90s), "-1m30s");
  EXPECT_EQ(human_duration(std::chrono::nanoseconds::min()), "-106751d23h");
}

}  // namespace
}  // namespace evenkeel::base
