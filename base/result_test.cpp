#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace evenkeel::base {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return Error{ErrorCode::kInvalidInput, std::to_string(value) + " is odd"};
  return value / 2;
}

Result<int> quarter(int value) {
  EVENKEEL_ASSIGN(const int first, half(value));
  EVENKEEL_ASSIGN(const int second, half(first));
  return second;
}

Status is_even(int value) {
  EVENKEEL_TRY(half(value));
  return {};
}

TEST(Result, carries_a_value_or_an_error) {
  EXPECT_EQ(half(4).value(), 2);
  ASSERT_FALSE(half(3).ok());
  EXPECT_EQ(half(3).error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(half(3).error().message, "3 is odd");
}

TEST(Result, assign_and_try_return_the_first_error) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().message, "3 is odd");
  EXPECT_TRUE(is_even(2).ok());
  EXPECT_EQ(is_even(5).error().message, "5 is odd");
}

TEST(Result, holds_values_that_can_only_be_moved) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  ASSERT_TRUE(result.ok());
  std::unique_ptr<int> moved = std::move(result).value();
  EXPECT_EQ(*moved, 7);
}

TEST(Result, a_loop_over_a_temporary_result_is_safe) {
  const auto list = [] { return Result<std::string>(std::string(100, 'x')); };
  int count = 0;
  for (const char c : list().value()) count += c == 'x' ? 1 : 0;
  EXPECT_EQ(count, 100);
}

TEST(Result, context_goes_in_front_and_keeps_the_code) {
  const Error error = with_context("reading /data/x", Error{ErrorCode::kIo, "truncated at byte 12"});
  EXPECT_EQ(error.code, ErrorCode::kIo);
  EXPECT_EQ(error.message, "reading /data/x: truncated at byte 12");
}

TEST(Result, every_code_has_a_name_of_its_own) {
  std::set<std::string> names;
  const int last = static_cast<int>(ErrorCode::kInternal);
  for (int i = 0; i <= last; ++i) names.insert(error_code_name(static_cast<ErrorCode>(i)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(last + 1));
}

}  // namespace
}  // namespace evenkeel::base
