#include "base/log.h"

#include <gtest/gtest.h>

#include <sstream>
#include <thread>
#include <vector>

#include "base/time_text.h"

namespace evenkeel::base {
namespace {

std::vector<Json> lines_of(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    auto value = parse_json(line);
    EXPECT_TRUE(value.ok()) << line;
    if (value.ok()) lines.push_back(std::move(value).value());
  }
  return lines;
}

TEST(Log, a_line_is_one_json_object_with_common_and_own_fields_in_order) {
  init_log(LogLevel::kInfo, {{"rank", 3}});
  add_common_log_field("attempt", 1);
  testing::internal::CaptureStderr();
  log_info("a \"quoted\"\nmessage", {{"step", 12}, {"loss", 0.5}, {"level", "mine"}});
  const std::string text = testing::internal::GetCapturedStderr();
  const auto lines = lines_of(text);
  ASSERT_EQ(lines.size(), 1u) << text;
  std::string keys;
  for (const auto& [key, value] : lines[0].items()) keys += key + " ";
  EXPECT_EQ(keys, "time level message rank attempt step loss level_ ");
  EXPECT_EQ(lines[0]["level"], "info");
  EXPECT_EQ(lines[0]["message"], "a \"quoted\"\nmessage");
  EXPECT_EQ(lines[0]["rank"], 3);
  const std::string time = lines[0]["time"].get<std::string>();
  EXPECT_TRUE(parse_rfc3339(time).ok()) << time;
  EXPECT_EQ(time.size(), std::string("2026-11-30T18:20:00.123Z").size());
}

TEST(Log, lines_below_the_level_are_not_written) {
  init_log(LogLevel::kWarning, {});
  testing::internal::CaptureStderr();
  log_debug("no");
  log_info("no");
  log_warning("yes");
  log_error("yes");
  EXPECT_EQ(lines_of(testing::internal::GetCapturedStderr()).size(), 2u);
}

TEST(Log, bytes_that_are_not_text_and_format_marks_do_no_harm) {
  init_log(LogLevel::kInfo, {});
  testing::internal::CaptureStderr();
  log_info("\xff {} %v %s", {{"bytes", "\xfe"}});
  const auto lines = lines_of(testing::internal::GetCapturedStderr());
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["message"], "\xef\xbf\xbd {} %v %s");
}

TEST(Log, lines_of_many_threads_stay_whole) {
  init_log(LogLevel::kInfo, {});
  testing::internal::CaptureStderr();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 100; ++i) log_info("line", {{"thread", t}, {"i", i}});
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(lines_of(testing::internal::GetCapturedStderr()).size(), 400u);
}

}  // namespace
}  // namespace evenkeel::base
