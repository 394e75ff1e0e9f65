#include "trainer/coordinator/history.h"

#include <gtest/gtest.h>

namespace evenkeel::trainer {
namespace {

StepWork step_of(std::int64_t number, std::size_t ranks, double samples) {
  StepWork step;
  step.step = number;
  step.step_seconds = 0.1;
  for (std::size_t r = 0; r < ranks; ++r) {
    RankWork rank;
    rank.samples = samples;
    rank.compute_seconds = 0.08;
    step.ranks.push_back(rank);
  }
  return step;
}

TEST(History, every_step_is_in_exactly_one_point_however_many_there_are) {
  History history;
  for (std::int64_t step = 1; step <= 10007; ++step) {
    history.add(step_of(step, 4, static_cast<double>(step)));
    if (step % 1009 != 0 && step != 10007) continue;
    const auto points = history.points();
    ASSERT_LE(points.size(), contract::kMaxHistoryPoints);
    ASSERT_GE(points.size(), contract::kMaxHistoryPoints / 4);
    std::int64_t steps = 0;
    double samples = 0;
    for (const auto& point : points) {
      steps += point.steps;
      samples += point.ranks[2].samples * static_cast<double>(point.steps);
    }
    EXPECT_EQ(steps, step);
    EXPECT_EQ(points.back().step, step);
    EXPECT_NEAR(samples, static_cast<double>(step) * static_cast<double>(step + 1) / 2, 1e-3);
  }
}

TEST(History, fits_into_a_report_with_any_number_of_ranks) {
  for (const std::size_t ranks : {std::size_t{1}, std::size_t{17}, std::size_t{200}, std::size_t{250}}) {
    History history;
    for (std::int64_t step = 1; step <= 300; ++step) history.add(step_of(step, ranks, 8));
    EXPECT_LE(history.points().size() * ranks, contract::kMaxHistoryEntries);
    EXPECT_FALSE(history.points().empty()) << ranks;
  }
  History history;
  for (std::int64_t step = 1; step <= 300; ++step) history.add(step_of(step, 1000, 8));
  EXPECT_TRUE(history.points().empty());
}

TEST(History, ranks_that_are_away_are_absent) {
  History history;
  StepWork step = step_of(1, 3, 8);
  step.ranks[1] = away();
  history.add(step);
  ASSERT_EQ(history.points().at(0).ranks.size(), 2u);
  EXPECT_EQ(history.points()[0].ranks[1].rank, 2);
}

}  // namespace
}  // namespace evenkeel::trainer
