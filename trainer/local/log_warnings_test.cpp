#include "trainer/local/log_warnings.h"

#include <gtest/gtest.h>

namespace evenkeel::trainer {
namespace {

TEST(LogWarnings, each_warning_once_with_its_fields_and_nothing_else) {
  const char log[] = R"({"time":"t1","level":"info","message":"effective configuration"}
some library speaks
{"time":"t2","level":"warning","message":"weights were not loaded","job":"j","rank":1,"layers":["fc"],"path":"/w"}
{"time":"t3","level":"warning","message":"weights were not loaded","job":"j","rank":1,"layers":["fc"],"path":"/w"}
{"time":"t4","level":"error","message":"disk is full","exitCode":74}
{"level":"warning", broken)";
  const std::vector<std::string> want = {R"(weights were not loaded (layers ["fc"], path /w))", "disk is full"};
  EXPECT_EQ(warnings_of(log, 10), want);
  EXPECT_EQ(warnings_of(log, 1).size(), 1u);
  EXPECT_TRUE(warnings_of("", 10).empty());
  EXPECT_TRUE(warnings_of("\n\n{}\n", 10).empty());
}

}  // namespace
}  // namespace evenkeel::trainer
