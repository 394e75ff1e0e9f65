// Facts beside the times of the steps: what ranks told, read and failed at makes the rules of correctness,
// configuration and environment fire.
#include <gtest/gtest.h>

#include "trainer/coordinator/coordination_story.h"

namespace evenkeel::trainer {
namespace {

using testing::Story;

// Of two ranks: seconds of computation, of waiting for input, and of the whole step.
void forty_steps(Story& story, double compute_seconds, double input_seconds, double step_seconds) {
  for (std::int64_t step = 1; step <= 40; ++step) {
    story.now += step_seconds;
    for (int r = 0; r < 2; ++r) {
      contract::Commit commit = test_commit(story.plans.at(step), r, compute_seconds);
      commit.phases.input_wait = input_seconds;
      commit.step_seconds = step_seconds;
      story.says(r, contract::MessageType::kCommit, commit);
    }
  }
}

TEST(CoordinationFacts, parameters_that_differ_are_the_verdict) {
  Story story(test_config(2, 10));
  story.all_join();
  story.ready(0, "beef");
  story.ready(1, "cafe");
  EXPECT_EQ(story.report().stage, contract::JobStage::kFailed);
  EXPECT_EQ(story.report().diagnosis.verdict, "ParameterDrift") << story.report().diagnosis.message;
}

TEST(CoordinationFacts, a_check_that_a_rank_failed_is_the_verdict) {
  for (const char* name : {"PeerMemoryCorruption", "LossScaledByReplicas", "GradientDiffers"}) {
    Story story(test_config(2, 10));
    story.all_join();
    story.says(1, contract::MessageType::kFailure,
               contract::Failure{76, std::string(name) + ": over the same samples it is another", 1});
    EXPECT_EQ(story.report().stage, contract::JobStage::kFailed);
    EXPECT_EQ(story.report().failure->exit_code, 76);
    EXPECT_EQ(story.report().diagnosis.verdict, name) << story.report().diagnosis.message;
    EXPECT_EQ(story.report().diagnosis.message.rfind("over the same samples", 0), 0u);
  }
}

TEST(CoordinationFacts, a_step_that_is_not_finite_and_has_an_empty_share) {
  Story story(test_config(4, 2), 20);  // two samples for four ranks
  story.starts();
  story.all_commit(1);
  story.says(0, contract::MessageType::kFailure, contract::Failure{76, "step 2: the loss is nan; lower the learning rate", 2});
  EXPECT_EQ(story.report().diagnosis.verdict, "EmptyBatchNaN") << story.report().diagnosis.message;
  Story even(test_config(2, 2), 20);
  even.starts();
  even.all_commit(1);
  even.says(0, contract::MessageType::kFailure, contract::Failure{76, "step 2: the loss is nan; lower the learning rate", 2});
  EXPECT_EQ(even.report().diagnosis.verdict, "Measuring");
}

TEST(CoordinationFacts, ranks_that_read_the_same_records) {
  Story story(test_config(2, 10), 100);
  story.starts();
  for (std::int64_t step = 1; step <= 3; ++step) {
    EXPECT_EQ(story.report().diagnosis.verdict, "Measuring");
    for (int r = 0; r < 2; ++r) {
      contract::Commit commit = test_commit(story.plans.at(step), r);
      commit.ids_hash = 4711 + static_cast<std::uint64_t>(step);
      story.says(r, contract::MessageType::kCommit, commit);
    }
  }
  EXPECT_EQ(story.report().diagnosis.verdict, "DuplicateData") << story.report().diagnosis.message;
}

TEST(CoordinationFacts, records_that_are_not_all_records_once) {
  Story story(test_config(2, 10), 20);
  story.starts();
  story.all_commit(1);
  for (int r = 0; r < 2; ++r) {
    contract::Commit commit = test_commit(story.plans.at(2), r);
    commit.reduced_ids_hash += 1;
    story.says(r, contract::MessageType::kCommit, commit);
  }
  EXPECT_EQ(story.report().stage, contract::JobStage::kFailed);
  EXPECT_EQ(story.report().diagnosis.verdict, "DuplicateData") << story.report().diagnosis.message;
}

TEST(CoordinationFacts, an_epoch_in_the_order_of_the_last_one) {
  for (const bool shuffle : {true, false}) {
    contract::TrainerConfig config = test_config(2, 10, 4);
    config.spec.dataset.shuffle = shuffle;
    Story story(config, 40);
    story.starts();
    for (std::int64_t step = 1; step <= 9; ++step) story.all_commit(step);  // of this story: always the same
    EXPECT_EQ(story.report().diagnosis.verdict, shuffle ? "SameOrder" : "Measuring");
  }
}

TEST(CoordinationFacts, a_rate_that_did_not_grow_with_the_batch) {
  contract::TrainerConfig config = test_config(4, 64);
  config.spec.training.global_batch.reset();
  config.spec.training.batch_per_replica = 16;
  config.spec.training.learning_rate_scaling = contract::LearningRateScaling::kNone;
  Story none(config, 6400);
  none.starts();
  EXPECT_NE(none.report().diagnosis.message.find("LearningRateMismatch: updates an epoch fell by a factor of 4.00"),
            std::string::npos)
      << none.report().diagnosis.message;
  config.spec.training.learning_rate_scaling = contract::LearningRateScaling::kSqrt;
  Story root(config, 6400);
  root.starts();
  EXPECT_EQ(root.report().diagnosis.message.find("LearningRateMismatch"), std::string::npos);
}

TEST(CoordinationFacts, a_loss_that_jumps_in_the_first_steps) {
  Story story(test_config(2, 10), 1000);
  story.starts();
  for (std::int64_t step = 1; step <= 12; ++step) {
    for (int r = 0; r < 2; ++r) {
      contract::Commit commit = test_commit(story.plans.at(step), r);
      commit.loss_sum = 10 * (step == 12 ? 9.0 : 2.3 - 0.1 * static_cast<double>(step));
      story.says(r, contract::MessageType::kCommit, commit);
    }
    if (step < 12) {
      EXPECT_EQ(story.report().diagnosis.message.find("LearningRateMismatch"), std::string::npos);
    }
  }
  EXPECT_NE(story.report().diagnosis.message.find("times its median in warm-up"), std::string::npos)
      << story.report().diagnosis.message;
}

TEST(CoordinationFacts, ranks_that_do_not_come) {
  contract::TrainerConfig config = test_config(3, 9);
  Story story(config);
  story.joins(0);
  for (int i = 0; i < 119; ++i) {
    story.says(0, contract::MessageType::kHeartbeat, contract::Heartbeat{0, "other"});
    story.passes(1);
  }
  EXPECT_EQ(story.report().diagnosis.message.find("GangIncomplete"), std::string::npos);
  for (int i = 0; i < 10; ++i) {
    story.says(0, contract::MessageType::kHeartbeat, contract::Heartbeat{0, "other"});
    story.passes(1);
  }
  EXPECT_NE(story.report().diagnosis.message.find(
                "GangIncomplete: 1 pods run and 2 wait for a node: rank 1, 2 has not joined"),
            std::string::npos)
      << story.report().diagnosis.message;
}

TEST(CoordinationFacts, threads_and_a_cache_are_priced_by_what_the_ranks_tell) {
  contract::TrainerConfig config = test_config(2, 64);
  config.spec.training.epochs = 4;
  Story story(config, 64 * 100);
  for (int r = 0; r < 2; ++r) {
    contract::Join join = test_join(r, 64 * 100);
    join.data_threads = 2;
    join.free_memory_bytes = r == 0 ? 4e9 : 2e9;
    join.decoded_bytes = 1e9;
    join.device_model = r == 0 ? "new" : "old";
    story.joins(r, join);
  }
  story.all_ready();
  forty_steps(story, 0.06, 0.04, 0.1);
  const contract::JobReport report = story.report();
  EXPECT_EQ(report.diagnosis.verdict, "InputBound");
  std::string actions;
  for (const contract::Remedy& remedy : report.diagnosis.remedies) actions += remedy.action + "; ";
  EXPECT_NE(actions.find("data threads 2 -> 4"), std::string::npos) << actions;
  EXPECT_NE(actions.find("cache in memory: 954 MiB"), std::string::npos) << actions;
}

TEST(CoordinationFacts, devices_of_two_models) {
  Story story(test_config(4, 64), 64 * 100);
  for (int r = 0; r < 4; ++r) {
    contract::Join join = test_join(r, 64 * 100);
    join.device_model = r < 2 ? "old" : "new";
    story.joins(r, join);
  }
  story.all_ready();
  for (std::int64_t step = 1; step <= 40; ++step) {
    story.now += 0.16;
    for (int r = 0; r < 4; ++r) {
      contract::Commit commit = test_commit(story.plans.at(step), r, r < 2 ? 0.15 : 0.1);
      commit.step_seconds = 0.16;
      story.says(r, contract::MessageType::kCommit, commit);
    }
  }
  EXPECT_EQ(story.report().diagnosis.verdict, "HeterogeneousDevices") << story.report().diagnosis.message;
}

TEST(CoordinationFacts, the_bytes_of_the_records_explain_what_varies) {
  Story story(test_config(4, 64), 64 * 100);
  story.starts();
  for (std::int64_t step = 1; step <= 60; ++step) {
    story.now += 0.21;
    for (int r = 0; r < 4; ++r) {
      const bool most = step % 4 == r;
      contract::Commit commit = test_commit(story.plans.at(step), r, most ? 0.2 : 0.1);
      commit.work = most ? 2e6 : 1e6;
      commit.step_seconds = 0.21;
      story.says(r, contract::MessageType::kCommit, commit);
    }
  }
  EXPECT_EQ(story.report().diagnosis.verdict, "VariableWork") << story.report().diagnosis.message;
  EXPECT_NE(story.report().diagnosis.message.find("balance by work"), std::string::npos);
}

TEST(CoordinationFacts, the_preflight_tells_of_input_and_of_buckets) {
  Story story(test_config(2, 64), 64 * 100);
  story.all_join();
  contract::Ready ready{story.fence(), "beef", 0.1};
  ready.preflight.emplace();
  ready.preflight->bus_bytes_per_second = 1e8;
  ready.preflight->best_bus_bytes_per_second = 2e8;
  ready.preflight->best_bucket_bytes = 4 << 20;
  ready.preflight->real_step_seconds = 0.1;
  ready.preflight->synthetic_step_seconds = 0.05;
  for (int r = 0; r < 2; ++r) story.says(r, contract::MessageType::kReady, ready);
  forty_steps(story, 0.05, 0.07, 0.15);
  const contract::JobReport report = story.report();
  EXPECT_EQ(report.diagnosis.verdict, "InputBound");
  EXPECT_NE(report.diagnosis.message.find("data made up would be 2.00 times as fast"), std::string::npos)
      << report.diagnosis.message;
  std::string actions;
  for (const contract::Remedy& remedy : report.diagnosis.remedies) actions += remedy.action + "; ";
  EXPECT_NE(actions.find("buckets of 4096 KiB"), std::string::npos) << actions;
}

}  // namespace
}  // namespace evenkeel::trainer
