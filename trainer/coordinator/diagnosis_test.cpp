#include "trainer/coordinator/diagnosis.h"

#include <gtest/gtest.h>

namespace evenkeel::trainer {
namespace {

using Times = std::vector<double>;

// One step: own work by rank in ms, 64 samples each, `rest_ms` of communication after the slowest.
StepWork step(const Times& own_ms, double rest_ms) {
  StepWork work;
  double slowest = 0;
  for (const double t : own_ms) {
    RankWork rank;
    rank.samples = 64;
    rank.compute_seconds = (t - 2) / 1000;
    rank.input_seconds = 0.002;
    work.ranks.push_back(rank);
    slowest = std::max(slowest, t);
  }
  work.step_seconds = (slowest + rest_ms) / 1000;
  return work;
}

DiagnosisWindow window_of(const std::vector<StepWork>& cycle, int steps) {
  DiagnosisWindow window;
  for (int i = 0; i < window.limits().warmup_steps + steps; ++i)
    window.add(cycle[static_cast<std::size_t>(i) % cycle.size()], false);
  return window;
}

Findings judge(const std::vector<StepWork>& cycle, int steps = 20) {
  return diagnose(window_of(cycle, steps), StragglerRule{}, std::nullopt);
}

TEST(Diagnosis, names_the_slow_rank_in_one_sentence) {
  const Findings found = judge({step({100, 100, 100, 180}, 13.5)});
  EXPECT_EQ(found.diagnosis.verdict, "Straggler");
  EXPECT_EQ(found.diagnosis.message.substr(0, found.diagnosis.message.find("; no baseline")),
            "rank 3 runs at 0.56 of the others; 31% of each step is waiting for it");
  EXPECT_NE(found.diagnosis.message.find("no baseline"), std::string::npos);
  EXPECT_FALSE(found.diagnosis.losses.fixed_cost);
  EXPECT_EQ(found.balance.slowest_rank, 3);
  EXPECT_NEAR(*found.balance.imbalance_ratio, 0.5, 1e-9);
  EXPECT_NEAR(*found.ranks[3].relative_performance, 0.556, 5e-4);
  EXPECT_NEAR(found.ranks[0].share, 0.25, 1e-12);
}

TEST(Diagnosis, has_no_verdict_before_there_is_a_window) {
  const Findings found = judge({step({100, 100, 100, 180}, 10)}, 9);
  EXPECT_EQ(found.diagnosis.verdict, "Measuring");
  EXPECT_TRUE(found.ranks.empty());
  EXPECT_NE(found.diagnosis.message.find("9 of at least 10 steps"), std::string::npos)
      << found.diagnosis.message;
}

TEST(Diagnosis, ten_short_steps_are_not_enough) {
  // 10 ms a step: one second needs about 100 of them.
  EXPECT_TRUE(judge({step({10, 10, 10, 18}, 1)}, 40).ranks.empty());
  EXPECT_EQ(judge({step({10, 10, 10, 18}, 1)}, 60).diagnosis.verdict, "Straggler");
}

TEST(Diagnosis, equal_ranks_are_no_straggler) {
  const Findings found = judge({step({100, 101, 99, 100}, 10)});
  EXPECT_EQ(found.diagnosis.verdict, "Measuring");
  EXPECT_EQ(found.diagnosis.message.rfind("no straggler", 0), 0u) << found.diagnosis.message;
}

TEST(Diagnosis, a_slow_rank_that_costs_little_is_not_named) {
  // 0.6 of the others, but the step is nearly all communication.
  EXPECT_EQ(judge({step({10, 10, 10, 17}, 200)}).diagnosis.verdict, "Measuring");
}

TEST(Diagnosis, ranks_that_take_turns_are_no_straggler) {
  std::vector<StepWork> cycle;
  for (std::size_t slow = 0; slow < 4; ++slow) {
    Times own(4, 300);
    own[slow] = 600;
    cycle.push_back(step(own, 10));
  }
  EXPECT_EQ(judge(cycle).diagnosis.verdict, "Measuring");
}

TEST(Diagnosis, a_rank_with_half_a_share_of_work_is_not_slow) {
  std::vector<StepWork> cycle{step({100, 100, 100, 50}, 10)};
  cycle[0].ranks[3].samples = 32;
  const Findings found = judge(cycle);
  EXPECT_EQ(found.diagnosis.verdict, "Measuring");
  EXPECT_NEAR(*found.ranks[3].relative_performance, 1, 1e-9);
}

TEST(Diagnosis, a_throttled_rank_that_stands_still_now_and_then_is_named) {
  // 0.2 of a core in periods of 100 ms: one step in two runs at full speed, the other stands still for 80 ms.
  const Findings found = judge({step({12, 12, 12, 12}, 1), step({12, 12, 92, 12}, 1)}, 80);
  EXPECT_EQ(found.diagnosis.verdict, "Straggler");
  EXPECT_EQ(found.balance.slowest_rank, 2);
}

TEST(Diagnosis, the_slow_one_of_two_is_named) {
  const Findings found = judge({step({100, 180}, 10)});
  EXPECT_EQ(found.diagnosis.verdict, "Straggler");
  EXPECT_EQ(found.balance.slowest_rank, 1);
}

TEST(Diagnosis, two_slow_ranks_are_both_mentioned) {
  const Findings found = judge({step({100, 100, 100, 100, 200, 200}, 10)});
  EXPECT_EQ(found.diagnosis.verdict, "Measuring");
  EXPECT_NE(found.diagnosis.message.find("rank 4, 5"), std::string::npos) << found.diagnosis.message;
}

TEST(Diagnosis, one_rank_has_no_others) {
  EXPECT_EQ(judge({step({100}, 1)}).diagnosis.message.rfind("one rank", 0), 0u);
}

TEST(Diagnosis, a_baseline_gives_the_fixed_cost_and_the_efficiency) {
  const Findings found = diagnose(window_of({step({98, 98, 98, 146}, 14)}, 20), StragglerRule{},
                                  Baseline{64, 0.096, 0.002, 0.1, BaselineSource::kMeasured});
  EXPECT_NEAR(*found.diagnosis.losses.fixed_cost, 0, 1e-9);
  EXPECT_NEAR(*found.diagnosis.losses.imbalance, 0.3, 1e-9);
  EXPECT_NEAR(*found.balance.scaling_efficiency, 2.5 / 4, 1e-9);
  EXPECT_EQ(found.diagnosis.message.find("no baseline"), std::string::npos);
}

TEST(DiagnosisWindow, leaves_out_warm_up_and_special_steps_and_forgets_old_ones) {
  DiagnosisWindow window;
  for (int i = 0; i < 10; ++i) window.add(step({500}, 0), false);
  EXPECT_EQ(window.size(), 0);
  window.add(step({500}, 0), true);
  EXPECT_EQ(window.size(), 0);
  for (int i = 0; i < 50; ++i) window.add(step({500}, 0), false);
  EXPECT_EQ(window.size(), 20);
  for (int i = 0; i < 5000; ++i) window.add(step({10}, 0), false);
  EXPECT_NEAR(window.seconds(), 10.0, 0.011);
}

}  // namespace
}  // namespace evenkeel::trainer
