#include "operator/act/expectations.h"

#include <gtest/gtest.h>

namespace evenkeel::oper {
namespace {

using namespace std::chrono_literals;
using State = Expectations::State;
const base::MonotonicTime kNow{1h};
const auto kNo = [] { return false; };
const auto kYes = [] { return true; };

TEST(Expectations, wait_until_the_cache_has_shown_every_own_write) {
  Expectations expectations;
  EXPECT_EQ(expectations.state("j", kNow), State::kSatisfied);
  expectations.created("j", "u1", kNow, kNo);
  expectations.created("j", "u2", kNow, kNo);
  expectations.saw("u1", false);
  EXPECT_EQ(expectations.state("j", kNow), State::kWaiting);
  expectations.saw("u2", false);
  EXPECT_EQ(expectations.state("j", kNow), State::kSatisfied);
}

TEST(Expectations, an_event_that_came_before_the_answer_counts) {
  Expectations expectations;
  expectations.created("j", "u1", kNow, kYes);
  expectations.status_written("j", "7", kNow, kYes);
  EXPECT_EQ(expectations.state("j", kNow), State::kSatisfied);
}

TEST(Expectations, a_namesake_satisfies_nothing) {
  Expectations expectations;
  expectations.created("j", "u1", kNow, kNo);
  expectations.saw("u1-of-another", false);
  EXPECT_EQ(expectations.state("j", kNow), State::kWaiting);
}

TEST(Expectations, an_expired_one_is_never_a_satisfied_one) {
  Expectations expectations(5s);
  expectations.created("j", "u1", kNow, kNo);
  EXPECT_EQ(expectations.remaining("j", kNow + 2s), 3s);
  EXPECT_EQ(expectations.state("j", kNow + 5s), State::kExpired);
  // A live list shows it: the cache will too; until then it is waited for, and asked again.
  expectations.listed(
      "j", [](const std::string&) { return true; }, kNow + 5s);
  EXPECT_EQ(expectations.state("j", kNow + 6s), State::kWaiting);
  EXPECT_EQ(expectations.state("j", kNow + 10s), State::kExpired);
  // It is gone again: it will never come.
  expectations.listed(
      "j", [](const std::string&) { return false; }, kNow + 10s);
  EXPECT_EQ(expectations.state("j", kNow + 10s), State::kSatisfied);
}

TEST(Expectations, a_deletion_is_seen_when_it_goes_not_when_it_is_seen_alive) {
  Expectations expectations;
  expectations.deleted("j", "u1", kNow, kNo);
  expectations.saw("u1", false);
  EXPECT_EQ(expectations.state("j", kNow), State::kWaiting);
  expectations.saw("u1", true);
  EXPECT_EQ(expectations.state("j", kNow), State::kSatisfied);
}

TEST(Expectations, a_status_write_is_seen_at_its_version) {
  Expectations expectations;
  expectations.status_written("j", "7", kNow, kNo);
  expectations.saw_job("j", [](const std::string& expected) { return expected == "6"; });
  EXPECT_EQ(expectations.state("j", kNow), State::kWaiting);
  expectations.saw_job("j", [](const std::string& expected) { return expected == "7"; });
  EXPECT_EQ(expectations.state("j", kNow), State::kSatisfied);
}

TEST(Expectations, a_forgotten_job_expects_nothing) {
  Expectations expectations;
  expectations.created("j", "u1", kNow, kNo);
  expectations.forget("j");
  expectations.saw("u1", false);
  EXPECT_EQ(expectations.state("j", kNow + 1h), State::kSatisfied);
}

}  // namespace
}  // namespace evenkeel::oper
