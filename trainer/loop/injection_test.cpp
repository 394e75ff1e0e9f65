#include "trainer/loop/injection.h"

#include <gtest/gtest.h>

namespace evenkeel::trainer {
namespace {

TEST(Injection, is_for_the_rank_that_is_named_from_the_step_that_is_named) {
  auto injection = Injection::parse("input=0.5,network=0.25,from=1,compute=0.002@2", 2, 4);
  ASSERT_TRUE(injection.ok());
  EXPECT_EQ(injection->compute_seconds(10), 0);
  injection->set_step(1);
  EXPECT_DOUBLE_EQ(injection->compute_seconds(10), 0.02);
  EXPECT_DOUBLE_EQ(Injection::parse("step=0.5", 0, 1)->once_seconds(), 0.5);
  EXPECT_DOUBLE_EQ(injection->input_seconds(2), 1.0);
  EXPECT_DOUBLE_EQ(injection->network_seconds(), 0.25);
  EXPECT_EQ(Injection::parse("compute=0.002@2", 1, 4)->compute_seconds(10), 0);
}

TEST(Injection, rotates) {
  auto injection = Injection::parse("compute=1@rotate", 1, 3);
  ASSERT_TRUE(injection.ok());
  std::vector<double> seen;
  for (int step = 0; step < 6; ++step) {
    injection->set_step(step);
    seen.push_back(injection->compute_seconds(1));
  }
  EXPECT_EQ(seen, (std::vector<double>{0, 1, 0, 0, 1, 0}));
}

TEST(Injection, mistakes_have_no_seconds_and_a_record_is_repeated_once) {
  auto injection = Injection::parse("repeat-record@1,from=3,drop-gradient", 1, 2);
  ASSERT_TRUE(injection.ok());
  EXPECT_TRUE(injection->any());
  EXPECT_FALSE(injection->repeats_record(8)) << "not before the first step";
  EXPECT_FALSE(injection->drops_gradient());
  injection->set_step(1);
  EXPECT_FALSE(injection->repeats_record(1)) << "one record cannot take the place of another";
  injection->set_step(2);
  EXPECT_TRUE(injection->repeats_record(8));
  injection->set_step(3);
  EXPECT_FALSE(injection->repeats_record(8));
  EXPECT_TRUE(injection->drops_gradient());
  EXPECT_TRUE(Injection::parse("drop-gradient", 0, 2)->drops_gradient()) << "in the pre-flight too";
  EXPECT_FALSE(Injection::parse("repeat-record=1", 0, 2).ok());
  EXPECT_FALSE(Injection::parse("drop-gradient@x", 0, 2).ok());
}

TEST(Injection, what_cannot_be_read_is_named) {
  for (const char* text : {"compute", "compute=", "compute=x", "compute=-1", "gpu=1", "compute=1@x", "compute=1@-3", "compute=nan"}) {
    const auto injection = Injection::parse(text, 0, 1);
    ASSERT_FALSE(injection.ok()) << text;
    EXPECT_NE(injection.error().message.find(text), std::string::npos);
  }
  EXPECT_FALSE(Injection::parse("", 0, 1)->any());
}

}  // namespace
}  // namespace evenkeel::trainer
