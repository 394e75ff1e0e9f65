#include "trainer/coordinator/diagnosis.h"

#include <gtest/gtest.h>

#include "trainer/coordinator/waterfall_fixture.h"

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
            "rank 3 runs at 0.56 of the others; 31% of each step is waiting for it and 10% is the speed that it lacks");
  EXPECT_NE(found.diagnosis.message.find("no baseline"), std::string::npos);
  EXPECT_NEAR(*found.diagnosis.losses.imbalance, 0.31 + 0.10, 0.01) << "the sentence and the loss are one figure";
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

TEST(Diagnosis, a_healthy_job_scales_fine) {
  const Findings found = judge({step({100, 101, 99, 100}, 10)});
  EXPECT_EQ(found.diagnosis.verdict, "ScalingFine");
  EXPECT_EQ(found.diagnosis.message.rfind("no straggler", 0), 0u) << found.diagnosis.message;
  EXPECT_FALSE(found.balance.slowest_rank) << "the slowest of equals is no straggler";
}

TEST(Diagnosis, a_slow_rank_that_costs_little_is_not_named) {
  // 0.6 of the others, but the step is nearly all communication.
  const Findings found = judge({step({10, 10, 10, 17}, 200)});
  EXPECT_EQ(found.diagnosis.verdict, "CommunicationBound");
  EXPECT_EQ(found.diagnosis.message.find("Straggler"), std::string::npos);
}

TEST(Diagnosis, ranks_that_take_turns_are_no_straggler) {
  std::vector<StepWork> cycle;
  for (std::size_t slow = 0; slow < 4; ++slow) {
    Times own(4, 300);
    own[slow] = 600;
    cycle.push_back(step(own, 10));
  }
  EXPECT_EQ(judge(cycle).diagnosis.verdict, "VariableWork");
}

TEST(Diagnosis, a_rank_with_half_a_share_of_work_is_not_slow) {
  std::vector<StepWork> cycle{step({100, 100, 100, 50}, 10)};
  cycle[0].ranks[3].samples = 32;
  Findings found = judge(cycle);
  EXPECT_EQ(found.diagnosis.verdict, "ImbalancedShards");
  EXPECT_NE(found.diagnosis.message.find("1.14 times the mean number of samples"), std::string::npos)
      << found.diagnosis.message;
  DiagnosisInput input;
  input.job.shares_by_speed = true;
  found = diagnose(window_of(cycle, 20), input);
  EXPECT_EQ(found.diagnosis.verdict, "VariableWork") << "shares that the balancer gave are no fault";
  EXPECT_NEAR(*found.ranks[3].relative_performance, 1, 1e-9);
}

TEST(Diagnosis, a_throttled_rank_that_stands_still_now_and_then_is_named) {
  // 0.2 of a core in periods of 100 ms: one step in two runs at full speed, the other stands still for 80 ms.
  const Findings found = judge({step({12, 12, 12, 12}, 1), step({12, 12, 92, 12}, 1)}, 80);
  EXPECT_EQ(found.diagnosis.verdict, "Straggler");
  EXPECT_EQ(found.balance.slowest_rank, 2);
}

// Half a core, and the reduction is where it stands still.
TEST(Diagnosis, waiting_for_a_throttled_rank_in_the_reduction_is_no_network) {
  const std::vector<StepWork> cycle{step({20, 20, 22, 20}, 20)};
  DiagnosisInput input;
  input.ranks = std::vector<RankFacts>(4, RankFacts{1.0, 1, 0.0, ""});
  input.ranks[2] = {0.5, 1, 0.97, ""};
  Findings found = diagnose(window_of(cycle, 60), input);
  EXPECT_EQ(found.diagnosis.verdict, "Straggler") << found.diagnosis.message;
  EXPECT_EQ(found.diagnosis.message.rfind("rank 2, stopped by its CPU limit of 0.50 cores in 97% of the periods", 0),
            0u)
      << found.diagnosis.message;
  // Its own work is late as well: one cause is named once.
  found = diagnose(window_of({step({20, 20, 30, 20}, 20)}, 60), input);
  EXPECT_EQ(found.diagnosis.verdict, "Straggler");
  EXPECT_EQ(found.diagnosis.message.find("also Straggler"), std::string::npos) << found.diagnosis.message;
  // All of them are stopped: nobody is slower than the others.
  for (RankFacts& rank : input.ranks) rank = {0.5, 1, 0.9, ""};
  found = diagnose(window_of(cycle, 60), input);
  EXPECT_EQ(found.diagnosis.verdict, "CpuStarved") << found.diagnosis.message;
  // Too seldom to be the reason.
  for (RankFacts& rank : input.ranks) rank.throttled_share = 0.2;
  EXPECT_EQ(diagnose(window_of(cycle, 60), input).diagnosis.verdict, "CommunicationBound");
  for (RankFacts& rank : input.ranks) rank.throttled_share.reset();
  EXPECT_EQ(diagnose(window_of(cycle, 60), input).diagnosis.verdict, "CommunicationBound");
}

// Each rank stands still in another step: somebody is waited for in all of them, and nobody is slower.
TEST(Diagnosis, ranks_that_their_limits_stop_in_turns_are_starved) {
  std::vector<StepWork> cycle;
  for (std::size_t stopped = 0; stopped < 4; ++stopped) {
    Times own(4, 300);
    own[stopped] = 600;
    cycle.push_back(step(own, 10));
  }
  DiagnosisInput input;
  input.ranks = std::vector<RankFacts>(4, RankFacts{0.5, 1, 0.9, ""});
  const Findings found = diagnose(window_of(cycle, 20), input);
  EXPECT_EQ(found.diagnosis.verdict, "CpuStarved") << found.diagnosis.message;
  for (RankFacts& rank : input.ranks) rank.throttled_share = 0.1;  // too seldom for that
  EXPECT_EQ(diagnose(window_of(cycle, 20), input).diagnosis.verdict, "VariableWork");
}

// Four ranks on two cores. Whoever has no core for a while is late, here or in the reduction.
TEST(Diagnosis, crowded_cores_are_neither_network_nor_varying_work) {
  const auto verdict = [](std::vector<StepWork> cycle, const DiagnosisInput& input = {}) {
    return diagnose(window_of(cycle, 60), input).diagnosis;
  };
  // 40 ms of 100 are left after the slowest, and each rank stood still for 20 in reductions.
  StepWork reducing = step({60, 60, 60, 60}, 40);
  for (RankWork& rank : reducing.ranks) rank.no_core_seconds = rank.no_core_reducing_seconds = 0.020;
  contract::Diagnosis found = verdict({reducing});
  EXPECT_EQ(found.verdict, "CpuStarved");
  EXPECT_EQ(found.message.rfind("the ranks were ready to run and had no core for 20% of each step; 40% of each step looks "
                                "like communication and is mostly that: fewer ranks on a node",
                                0),
            0u)
      << found.message;
  // One that lacks a core is no crowd, and little of it explains little.
  StepWork other = reducing;
  for (std::size_t r = 1; r < 4; ++r) other.ranks[r].no_core_seconds = other.ranks[r].no_core_reducing_seconds = 0;
  EXPECT_EQ(verdict({other}).verdict, "CommunicationBound");
  for (RankWork& rank : reducing.ranks) rank.no_core_seconds = rank.no_core_reducing_seconds = 0.006;
  EXPECT_EQ(verdict({reducing}).verdict, "CommunicationBound");
  for (RankWork& rank : reducing.ranks) rank.no_core_seconds = 0.030;  // in its own work: says nothing about reductions
  EXPECT_EQ(verdict({reducing}).verdict, "CommunicationBound");

  // In turns.
  std::vector<StepWork> cycle;
  for (std::size_t late = 0; late < 4; ++late) {
    Times own(4, 300);
    own[late] = 600;
    cycle.push_back(step(own, 10));
    cycle.back().ranks[late].no_core_seconds = 0.280;
  }
  found = verdict(cycle);
  EXPECT_EQ(found.verdict, "CpuStarved");
  EXPECT_NE(found.message.find("37% of each step is waiting for whoever lacks one, in turns"), std::string::npos) << found.message;
  for (std::size_t late = 0; late < 4; ++late) cycle[late].ranks[late].no_core_seconds = 0.130;
  EXPECT_EQ(verdict(cycle).verdict, "VariableWork") << "the lesser part of the waiting";
  for (std::size_t late = 0; late < 4; ++late) {
    for (RankWork& rank : cycle[late].ranks) rank.no_core_seconds = 0.280;
  }
  EXPECT_EQ(verdict(cycle).verdict, "VariableWork") << "all alike: nobody is later for it";

  // Whoever lacks one more often than others is late more often, by a little: no straggler. By much: it is one.
  cycle.clear();
  for (const double late : {116, 200}) {
    cycle.assign(1, step({100, 100, 100, late}, 10));
    for (RankWork& rank : cycle[0].ranks) rank.no_core_seconds = 0.020;
    cycle[0].ranks[3].no_core_seconds = 0.020 + (late - 100) / 1000;
    EXPECT_EQ(verdict(cycle).verdict, late < 150 ? "CpuStarved" : "Straggler") << late;
  }

  // At all: each step costs 60 ms more than its samples are worth, and 40 of them went without a core.
  DiagnosisInput input;
  input.baseline = Baseline{64, 0.096, 0.002, 0.1, BaselineSource::kMeasured};
  input.job.crowded = CrowdedNode{"node-1", 4, 2};
  input.job.batch_rule = BatchRule::kGlobalKept;
  StepWork fixed = step({160, 160, 160, 160}, 2);
  for (RankWork& rank : fixed.ranks) rank.no_core_seconds = 0.040;
  EXPECT_EQ(verdict({fixed}, input).verdict, "BatchNotScaled") << "where the batch was kept, that is what to mend";
  input.job.batch_rule = BatchRule::kUnknown;
  input.job.crowded.reset();
  EXPECT_EQ(verdict({fixed}, input).verdict, "CpuStarved");
  for (RankWork& rank : fixed.ranks) rank.no_core_seconds = 0.020;
  EXPECT_EQ(verdict({fixed}, input).verdict, "BatchNotScaled");
}

TEST(Diagnosis, a_batch_that_was_scaled_is_never_called_not_scaled) {
  DiagnosisInput input;
  input.baseline = Baseline{64, 0.096, 0.002, 0.1, BaselineSource::kMeasured};
  input.job.batch_rule = BatchRule::kPerRankKept;
  const Findings found = diagnose(window_of({step({160, 160, 160, 160}, 2)}, 40), input);
  EXPECT_EQ(found.diagnosis.verdict, "TooLittleWork") << found.diagnosis.message;
}

TEST(Diagnosis, a_straggler_is_told_with_its_cpu_limit) {
  DiagnosisInput input;
  input.ranks = std::vector<RankFacts>(4, RankFacts{0.4, 1, 0.0, ""});
  input.ranks[3] = {0.2, 1, 1.0, ""};
  const Findings found = diagnose(window_of({step({100, 100, 100, 180}, 13.5)}, 20), input);
  EXPECT_EQ(found.diagnosis.verdict, "Straggler");
  EXPECT_NE(found.diagnosis.message.find("stopped by its CPU limit of 0.20 cores in 100% of the periods"),
            std::string::npos)
      << found.diagnosis.message;
}

TEST(Diagnosis, the_slow_one_of_two_is_named) {
  const Findings found = judge({step({100, 180}, 10)});
  EXPECT_EQ(found.diagnosis.verdict, "Straggler");
  EXPECT_EQ(found.balance.slowest_rank, 1);
}

TEST(Diagnosis, two_slow_ranks_are_both_mentioned) {
  const Findings found = judge({step({100, 100, 100, 100, 200, 200}, 10)});
  EXPECT_EQ(found.diagnosis.verdict, "Straggler");
  EXPECT_EQ(found.diagnosis.message.rfind("ranks 4, 5 run at 0.50 of the others", 0), 0u)
      << found.diagnosis.message;
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

constexpr Baseline kBaseline{64, 0.096, 0.002, 0.100, BaselineSource::kMeasured};

Findings with_facts(const StepWork& each, DiagnosisInput input) {
  return diagnose(window_of({each}, 40), input);
}

TEST(Diagnosis, the_worked_examples) {
  DiagnosisInput input;
  input.baseline = kBaseline;
  input.job.batch_rule = BatchRule::kGlobalKept;
  // A: one of four at two thirds.
  Findings found = with_facts(step_of(160, {64, 64, 64, 64}, {96, 96, 96, 144}, 2), input);
  EXPECT_EQ(found.diagnosis.verdict, "Straggler");
  EXPECT_EQ(found.diagnosis.message,
            "rank 3 runs at 0.67 of the others; 22% of each step is waiting for it and 8% is the speed that it lacks");
  EXPECT_EQ(found.balance.slowest_rank, 3);
  EXPECT_NEAR(*found.balance.scaling_efficiency, 2.5 / 4, 1e-9);
  // A after its shares were moved: what is left is the network, and the rank is still known to be slow.
  input.job.shares_by_speed = true;
  found = with_facts(step_of(121, {70, 70, 70, 46}, {105, 105, 105, 103.5}, 2), input);
  EXPECT_EQ(found.diagnosis.verdict, "CommunicationBound");
  EXPECT_NEAR(*found.ranks[3].relative_performance, 0.67, 0.01);
  found = with_facts(step_of(115, {70, 70, 70, 46}, {105, 105, 105, 103.5}, 2), input);
  EXPECT_EQ(found.diagnosis.verdict, "ScalingFine");
  EXPECT_EQ(found.diagnosis.message.rfind("the shares fit the ranks' speed: rank 3 runs at 0.67", 0), 0u)
      << found.diagnosis.message;
  // With a slower rank more than a tenth is lost for good; nobody waits for it, so it is no verdict.
  found = with_facts(step_of(118, {72, 72, 72, 40}, {108, 108, 108, 108}, 2), input);
  EXPECT_EQ(found.diagnosis.verdict, "ScalingFine") << found.diagnosis.message;
  EXPECT_GT(*found.diagnosis.losses.imbalance, 0.1);
  // B: the batch was kept.
  found = with_facts(step_of(46, {16, 16, 16, 16}, {36, 36, 36, 36}, 1), input);
  EXPECT_EQ(found.diagnosis.verdict, "BatchNotScaled");
  EXPECT_EQ(
      found.diagnosis.message,
      "the global batch of 64 was kept, so that a rank has 16 samples; 46% of each step does not shrink "
      "with them; also CommunicationBound: 20% of each step is exposed communication");
  const contract::WaterfallReport report = waterfall_report(*found.waterfall, input.baseline);
  double ranks = *report.speedup;
  for (const auto& term : report.terms) ranks += term.ranks.value_or(0);
  EXPECT_NEAR(ranks, 4, 1e-9);
}

TEST(Diagnosis, a_fitted_baseline_is_said) {
  DiagnosisInput input;
  input.baseline = kBaseline;
  input.baseline->source = BaselineSource::kFitted;
  const Findings found = with_facts(step_of(104, {64, 64}, {96, 96}, 2), input);
  EXPECT_EQ(found.diagnosis.verdict, "ScalingFine");
  EXPECT_NE(found.diagnosis.message.find("baseline fitted"), std::string::npos);
}

TEST(Diagnosis, communication_is_slow_or_small_by_the_measured_link) {
  DiagnosisInput input;
  input.job.gradient_bytes = 102.2e6;
  input.job.bus_bytes_per_second = 1.25e9;  // 10 Gb/s: 143 ms for 8 ranks
  const Times n(8, 64), c(8, 400);
  EXPECT_NEAR(*ring_seconds(8, input.job), 0.143, 5e-4);
  Findings found = with_facts(step_of(402 + 150, n, c, 2), input);
  EXPECT_EQ(found.fired.at(0).rule, "D09");
  EXPECT_NE(found.diagnosis.message.find("Gb/s would allow"), std::string::npos) << found.diagnosis.message;
  found = with_facts(step_of(402 + 300, n, c, 2), input);
  EXPECT_EQ(found.fired.at(0).rule, "D08");
  EXPECT_NE(found.diagnosis.message.find("2.10 times what the measured link needs"), std::string::npos)
      << found.diagnosis.message;
  input.job.bus_bytes_per_second.reset();
  found = with_facts(step_of(402 + 300, n, c, 2), input);
  EXPECT_EQ(found.diagnosis.verdict, "CommunicationBound");
  EXPECT_EQ(found.fired.at(0).rule, "") << "unknown facts fire no rule";
}

TEST(Diagnosis, input_cores_devices_and_checkpoints) {
  DiagnosisInput input;
  const StepWork waits = step_of(150, {64, 64, 64, 64}, {100, 100, 100, 100}, 45);
  EXPECT_EQ(with_facts(waits, input).fired.at(0).rule, "D06");
  input.ranks = std::vector<RankFacts>(4, RankFacts{2.0, 4, 0.4, "cpu"});
  EXPECT_EQ(with_facts(waits, input).diagnosis.verdict, "CpuStarved");
  for (RankFacts& rank : input.ranks) rank.threads = 2;
  EXPECT_EQ(with_facts(waits, input).diagnosis.verdict, "InputBound");
  for (RankFacts& rank : input.ranks) rank.throttled_share = 0;  // else the limit would be the reason
  const StepWork mixed = step_of(160, {64, 64, 64, 64}, {100, 100, 150, 150}, 1);
  input.ranks[2].device_model = input.ranks[3].device_model = "old";
  EXPECT_EQ(with_facts(mixed, input).diagnosis.verdict, "HeterogeneousDevices");
  input.job.checkpoint_share = 0.07;
  EXPECT_EQ(with_facts(step_of(104, {64, 64}, {100, 100}, 1), input).diagnosis.verdict, "CheckpointStall");
  EXPECT_EQ(with_facts(mixed, input).diagnosis.verdict, "HeterogeneousDevices");
}

TEST(Diagnosis, a_rank_that_waits_for_its_disk) {
  StepWork each = step_of(160, {64, 64, 64, 64}, {100, 100, 100, 100}, 2);
  each.ranks[1].input_seconds = 0.05;
  const Findings found = with_facts(each, {});
  EXPECT_EQ(found.diagnosis.verdict, "Straggler");
  EXPECT_NE(found.diagnosis.message.find("look at its disk"), std::string::npos) << found.diagnosis.message;
}

TEST(Diagnosis, varying_work_is_told_by_its_units) {
  std::vector<StepWork> cycle;
  for (std::size_t most = 0; most < 4; ++most) {
    StepWork each = step_of(410, {8, 8, 8, 8}, {200, 200, 200, 200}, 1);
    for (std::size_t r = 0; r < 4; ++r) each.ranks[r].work = r == most ? 2000 : 1000;
    each.ranks[most].compute_seconds = 0.4;
    cycle.push_back(each);
  }
  EXPECT_EQ(diagnose(window_of(cycle, 20), DiagnosisInput{}).fired.at(0).rule, "D11");
}

TEST(Diagnosis, correctness_wins_over_every_loss) {
  const StepWork slow = step_of(160, {64, 64, 64, 64}, {96, 96, 96, 144}, 2);
  struct Row {
    const char* verdict;
    void (*inject)(DiagnosisInput&);
  };
  const Row rows[] = {
      {"DuplicateData", [](DiagnosisInput& i) { i.epoch.ids_seen = 100, i.epoch.unique_ids = 97; }},
      {"DuplicateData", [](DiagnosisInput& i) { i.epoch.equal_batches_in_a_row = 3; }},
      {"MissingData",
       [](DiagnosisInput& i) {
         i.epoch.data_samples = 100, i.epoch.skipped_samples = 1, i.epoch.ids_seen = 98;
       }},
      {"UnevenSteps",
       [](DiagnosisInput& i) {
         i.checks.planned_steps = {10, 10, 9, 10};
       }},
      {"ParameterDrift",
       [](DiagnosisInput& i) {
         i.checks.parameter_difference = 1e-12, i.checks.parameters_before_step_one = true;
       }},
      {"ParameterDrift",
       [](DiagnosisInput& i) {
         i.checks.parameter_difference = 2e-6, i.checks.parameters_before_step_one = false;
       }},
      {"LossScaledByReplicas",
       [](DiagnosisInput& i) {
         i.checks.loss_ratio = 3.98, i.checks.planned_steps = {9, 9, 9, 9};
       }},
      {"EmptyBatchNaN",
       [](DiagnosisInput& i) { i.checks.first_nonfinite_step_had_empty_or_partial_rank = true; }},
      {"ReduceOverflow",
       [](DiagnosisInput& i) {
         i.checks.gradients_finite_before_reduction = true, i.checks.gradients_finite_after_reduction = false;
       }},
      {"SameOrder", [](DiagnosisInput& i) { i.epoch.order_hash = 7, i.epoch.last_order_hash = 7; }},
  };
  for (const Row& row : rows) {
    DiagnosisInput input;
    row.inject(input);
    EXPECT_EQ(with_facts(slow, input).diagnosis.verdict, row.verdict);
    EXPECT_EQ(diagnose(DiagnosisWindow(), input).diagnosis.verdict, row.verdict) << "without a window too";
  }
  DiagnosisInput fine;
  fine.epoch = {100, 1, 99, 99, 0, 7, 8, true};
  fine.checks.planned_steps = {9, 9};
  fine.checks.parameter_difference = 5e-7;
  fine.checks.parameters_before_step_one = false;
  fine.checks.loss_ratio = 1.0;
  EXPECT_EQ(with_facts(slow, fine).diagnosis.verdict, "Straggler");
}

TEST(Diagnosis, notes_stand_beside_the_verdict) {
  DiagnosisInput input;
  input.job.local_batch_norm = true;
  input.job.sparse_bytes = 3e6;
  input.job.dense_bytes = 1e6;
  input.checks.updates_fell_by = 4;
  input.checks.rate_rose_by = 1;
  input.checks.steps = 400;
  input.checks.skipped_steps = 30;
  input.checks.shared_memory_bytes = 64e6;
  input.checks.ranks_per_pod = 2;
  input.checks.running_pods = 3;
  input.checks.pending_pods = 1;
  input.checks.pending_seconds = 130;
  const Findings found = with_facts(step_of(104, {8, 8}, {100, 100}, 1), input);
  EXPECT_EQ(found.diagnosis.verdict, "ScalingFine");
  for (const char* note : {"LearningRateMismatch", "SmallBatchNorm", "Fp16Overflow", "SharedMemorySmall",
                           "GangIncomplete", "SparseReduce"}) {
    EXPECT_NE(found.diagnosis.message.find(note), std::string::npos) << note;
  }
  EXPECT_EQ(found.fired.size(), 6u);
}

TEST(Diagnosis, a_rank_that_is_away_is_in_no_number) {
  StepWork each = step_of(160, {64, 64, 64, 64}, {96, 96, 96, 144}, 2);
  each.ranks.insert(each.ranks.begin(), away());
  const Findings found = with_facts(each, {});
  EXPECT_EQ(found.balance.slowest_rank, 4);
  EXPECT_FALSE(found.ranks[0].present);
  EXPECT_FALSE(found.ranks[0].relative_performance);
  EXPECT_EQ(found.diagnosis.message.rfind("rank 4 runs at 0.67", 0), 0u) << found.diagnosis.message;
}

TEST(DiagnosisWindow, another_group_begins_anew) {
  DiagnosisWindow window = window_of({step({500, 500, 500}, 0)}, 15);
  StepWork two = step({500, 500, 500}, 0);
  two.ranks[1] = away();
  window.add(two, false);
  EXPECT_EQ(window.size(), 1);
  window.restart();
  EXPECT_EQ(window.size(), 0);
  window.add(two, false);
  EXPECT_EQ(window.size(), 1) << "the warm-up is not repeated";
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
