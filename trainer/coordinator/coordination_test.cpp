#include "trainer/coordinator/coordination.h"

#include <gtest/gtest.h>

#include "trainer/coordinator/coordination_story.h"

namespace evenkeel::trainer {
namespace {

using contract::JobStage;
using contract::MessageType;
using testing::Story;

TEST(Coordination, a_job_runs_from_rendezvous_to_its_end) {
  Story s(test_config(2, 4), 5);
  s.joins(1);
  EXPECT_EQ(s.report().stage, JobStage::kRendezvous);
  EXPECT_EQ(s.report().message, "waiting for rank 0 of 2");
  EXPECT_EQ(s.got(s.id(1), MessageType::kMembership), nullptr);
  s.joins(0);
  EXPECT_EQ(s.membership(1).peers, (std::vector<std::string>{"127.0.0.1:5000", "127.0.0.1:5001"}));
  EXPECT_EQ(s.membership(1).rank, 1);
  EXPECT_EQ(s.membership(0).restore_rank, -1);
  EXPECT_EQ(s.membership(0).target_steps, 2);
  EXPECT_EQ(s.membership(0).fence, (contract::Fence{2, 1, 1}));
  s.ready(0);
  EXPECT_TRUE(s.plans.empty());
  s.ready(1);
  EXPECT_EQ(s.report().stage, JobStage::kRunning);
  ASSERT_EQ(s.plans.size(), 2u);
  EXPECT_EQ(s.plans[1].cuts, (std::vector<std::int64_t>{0, 2, 4}));
  EXPECT_EQ(s.plans[2].cuts, (std::vector<std::int64_t>{4, 4, 5}));
  s.all_commit(1);
  EXPECT_EQ(s.report().progress.step, 1);
  EXPECT_EQ(s.got(s.id(0), MessageType::kFinish), nullptr);
  s.all_commit(2);
  EXPECT_TRUE(contract::decode_finish(*s.got(s.id(0), MessageType::kFinish))->completed);
  EXPECT_FALSE(s.coordination().done(s.now));
  s.disconnects(0);
  s.disconnects(1);
  EXPECT_TRUE(s.coordination().done(s.now));
  EXPECT_EQ(s.coordination().exit_code(), 0);
  const contract::JobReport report = s.report();
  EXPECT_EQ(report.stage, JobStage::kCompleted);
  EXPECT_EQ(report.progress.samples, 5);
  EXPECT_NEAR(*report.progress.accuracy, 0.9, 1e-12);
  EXPECT_NEAR(*report.progress.loss, 2.0, 1e-12);
  EXPECT_EQ(report.replicas[0].consumed, 2);
  EXPECT_EQ(report.replicas[1].consumed, 3);
  EXPECT_EQ(report.replicas[1].state, "done");
}

TEST(Coordination, plans_are_four_ahead_of_the_last_commit_of_all) {
  Story s(test_config(2, 10));
  s.starts();
  EXPECT_EQ(s.plans.size(), 4u);
  s.commits(0, 1);
  s.commits(0, 2);  // overtakes: rank 1's commit of step 1 is still on its way
  EXPECT_EQ(s.plans.size(), 4u);
  EXPECT_EQ(s.report().progress.step, 0);
  s.commits(1, 1);
  EXPECT_EQ(s.report().progress.step, 1);
  EXPECT_EQ(s.plans.size(), 5u);
}

TEST(Coordination, the_end_waits_for_evaluation_and_checkpoint_of_all) {
  contract::TrainerConfig config = test_config(2, 100);
  config.spec.checkpoint.path = "/checkpoints";
  Story s(config);
  s.starts();
  s.commits(0, 1);
  s.commits(1, 1);
  for (int r = 0; r < 2; ++r) s.says(r, MessageType::kEvaluated, contract::Evaluated{1, 0, 5.0, 9, 10, 0.1});
  s.says(0, MessageType::kCheckpointed, contract::Checkpointed{1, "step-1", 77, 0.1, ""});
  EXPECT_EQ(s.got(s.id(0), MessageType::kFinish), nullptr);
  s.says(1, MessageType::kCheckpointed, contract::Checkpointed{1, "", 0, 0, ""});
  EXPECT_NE(s.got(s.id(0), MessageType::kFinish), nullptr);
  EXPECT_EQ(s.report().checkpoint_step, 1);
}

TEST(Coordination, the_last_checkpoint_must_be_written) {
  contract::TrainerConfig config = test_config(1, 100);
  config.spec.checkpoint.path = "/checkpoints";
  Story s(config);
  s.starts();
  s.commits(0, 1);
  s.says(0, MessageType::kCheckpointed, contract::Checkpointed{1, "", 0, 0, "no space left on device"});
  EXPECT_EQ(s.coordination().exit_code(), 75);
  EXPECT_NE(s.report().message.find("no space left"), std::string::npos);
}

TEST(Coordination, resumes_from_the_highest_checkpoint_of_the_lowest_rank) {
  Story s(test_config(3, 10), 100);
  for (int r = 0; r < 3; ++r) {
    contract::Join join = test_join(r, 100);
    join.checkpoint = {r == 0 ? 2 : 5, 0, r == 0 ? 20 : 50, "", {20, 15, 15}, {}};
    s.joins(r, join);
  }
  EXPECT_EQ(s.membership(0).restore_rank, 1);
  EXPECT_EQ(s.membership(0).restore_step, 5);
  EXPECT_EQ(s.membership(0).target_steps, 10);
  s.all_ready();
  EXPECT_EQ(s.plans.begin()->first, 6);
  EXPECT_EQ(s.plans[6].cuts.front(), 50);
  s.all_commit(6);
  EXPECT_EQ(s.report().progress.samples, 60);
}

TEST(Coordination, a_job_that_is_done_already_ends_at_once) {
  Story s(test_config(2, 10), 100);
  for (int r = 0; r < 2; ++r) {
    contract::Join join = test_join(r, 100);
    join.checkpoint = {10, 1, 0, "", {50, 50}, {}};
    s.joins(r, join);
  }
  s.all_ready();
  EXPECT_EQ(s.coordination().stage(), JobStage::kCompleted);
  EXPECT_NE(s.report().message.find("the checkpoint has already done 1 epochs (10 steps)"), std::string::npos)
      << s.report().message;
}

TEST(Coordination, different_parameters_stop_the_job_before_step_one) {
  Story s(test_config(3, 10));
  s.all_join();
  s.ready(0);
  s.ready(1);
  s.ready(2, "dead");
  EXPECT_EQ(s.coordination().exit_code(), 76);
  const auto abort = contract::decode_abort(*s.got(s.id(0), MessageType::kAbort));
  EXPECT_EQ(abort->culprit, 2);
  EXPECT_NE(abort->reason.find("ParameterDrift"), std::string::npos);
  EXPECT_TRUE(s.plans.empty());
}

TEST(Coordination, another_plan_is_refused_by_name_and_the_right_worker_takes_its_place) {
  Story s(test_config(3, 10));
  contract::Join wrong = test_join(0, 100);
  wrong.plan_hash = "bbbbbbbbbbbbbbbb";
  wrong.plan_parts[1].second = "9999";
  s.joins(0, wrong);  // the first one to come is not right because of that
  s.joins(1);
  EXPECT_EQ(s.refusal(s.id(0)), "");
  s.joins(2);
  const std::string reason = s.refusal(s.id(0));
  EXPECT_NE(reason.find("aaaaaaaaaaaa"), std::string::npos) << reason;
  EXPECT_NE(reason.find("bbbbbbbbbbbb"), std::string::npos) << reason;
  EXPECT_NE(reason.find("\"dense_2\""), std::string::npos) << reason;
  EXPECT_EQ(contract::decode_refused(*s.got(s.id(0), MessageType::kRefused))->exit_code, 78);
  EXPECT_EQ(s.got(s.id(1), MessageType::kMembership), nullptr);
  s.joins(0, test_join(0, 100), 2, 200);
  EXPECT_NE(s.got(200, MessageType::kMembership), nullptr);
}

TEST(Coordination, one_of_two_with_another_plan_byte_order_or_data_set_is_refused) {
  const auto refused = [](auto change) {
    Story s(test_config(2, 10));
    contract::Join wrong = test_join(1, 100);
    change(wrong);
    s.joins(1, wrong);
    s.joins(0);
    return s.refusal(s.id(1));
  };
  EXPECT_NE(refused([](auto& j) { j.plan_hash = "cccc"; }).find("plan hash is cccc"), std::string::npos);
  EXPECT_NE(refused([](auto& j) { j.byte_order = "big"; }).find("byte order is big"), std::string::npos);
  EXPECT_NE(refused([](auto& j) { j.train_samples = 99; }).find("99"), std::string::npos);
  EXPECT_NE(refused([](auto& j) { j.eval_samples = 7; }).find("evaluation split has 7"), std::string::npos);
}

TEST(Coordination, the_wrong_attempt_and_the_older_process_are_fenced_off) {
  Story s(test_config(2, 10));
  contract::Hello old = test_hello(test_config(2, 10), 0);
  old.attempt = 1;
  s.coordination().joined(300, old, test_join(0, 100), 1);
  auto out = s.coordination().take_outgoing();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(contract::decode_refused(out[0].payload)->exit_code, 75);

  s.joins(0, test_join(0, 100), 5);
  s.joins(0, test_join(0, 100), 4, 301);
  EXPECT_NE(s.refusal(301).find("incarnation 5 holds"), std::string::npos);
  s.joins(0, test_join(0, 100), 6, 302);  // the highest wins
  EXPECT_NE(s.refusal(s.id(0)).find("taken over by incarnation 6"), std::string::npos);
  s.joins(1);
  EXPECT_NE(s.got(302, MessageType::kMembership), nullptr);
}

TEST(Coordination, a_rank_that_leaves_before_the_start_is_waited_for_again) {
  Story s(test_config(2, 10));
  s.joins(0);
  s.disconnects(0);
  s.joins(1);
  EXPECT_EQ(s.report().message, "waiting for rank 0 of 2");
  s.joins(0);
  EXPECT_NE(s.got(s.id(1), MessageType::kMembership), nullptr);
}

TEST(Coordination, a_killed_worker_ends_the_attempt_for_all) {
  Story s(test_config(3, 10));
  s.starts();
  s.disconnects(1);
  EXPECT_EQ(contract::decode_abort(*s.got(s.id(0), MessageType::kAbort))->culprit, 1);
  EXPECT_EQ(s.got(s.id(1), MessageType::kAbort), nullptr);
  EXPECT_EQ(s.coordination().exit_code(), 75);
  EXPECT_EQ(s.report().failure->rank, 1);
  EXPECT_EQ(s.report().replicas[1].state, "lost");
  EXPECT_FALSE(s.coordination().done(s.now));
  EXPECT_TRUE(s.coordination().done(s.now + 2.1));  // others may hang: it does not wait for ever
}

TEST(Coordination, the_neighbours_echo_is_not_the_cause) {
  Story s(test_config(3, 10));
  s.starts();
  s.says(0, MessageType::kFailure, contract::Failure{75, "peer closed the ring", 1});
  EXPECT_EQ(s.got(s.id(2), MessageType::kAbort), nullptr);  // waits a moment for a better culprit
  s.disconnects(0);
  s.disconnects(1);
  EXPECT_EQ(s.report().failure->rank, 1);
  EXPECT_NE(s.got(s.id(2), MessageType::kAbort), nullptr);
}

TEST(Coordination, an_echo_without_a_cause_is_the_cause_in_the_end) {
  Story s(test_config(2, 10));
  s.starts();
  s.says(0, MessageType::kFailure, contract::Failure{75, "ring deadline", 1});
  s.passes(0.6);
  EXPECT_EQ(s.report().failure->rank, 0);
  EXPECT_EQ(s.coordination().exit_code(), 75);
}

TEST(Coordination, the_workers_exit_code_is_passed_on_where_it_means_something) {
  const std::pair<int, int> rows[] = {{64, 64}, {65, 65}, {69, 69}, {70, 75},
                                      {74, 75}, {76, 76}, {78, 78}, {1, 75}};
  for (const auto& [theirs, ours] : rows) {
    Story s(test_config(2, 10));
    s.starts();
    s.says(1, MessageType::kFailure, contract::Failure{theirs, "bad", 1});
    EXPECT_EQ(s.coordination().exit_code(), ours) << theirs;
    EXPECT_EQ(s.report().failure->exit_code, theirs);
  }
}

TEST(Coordination, silence_is_death_and_a_heartbeat_is_life) {
  Story s(test_config(2, 10));
  s.starts();
  for (int i = 0; i < 10; ++i) {
    s.says(0, MessageType::kHeartbeat, contract::Heartbeat{1, "forward"});
    s.says(1, MessageType::kHeartbeat, contract::Heartbeat{1, "forward"});
    s.passes(1.9);
  }
  EXPECT_EQ(s.coordination().stage(), JobStage::kRunning);
  s.says(0, MessageType::kHeartbeat, contract::Heartbeat{1, "forward"});
  s.passes(0.5);
  EXPECT_EQ(s.coordination().stage(), JobStage::kFailed);
  EXPECT_EQ(s.report().failure->rank, 1);
  EXPECT_NE(s.report().message.find("nothing heard for 2 s"), std::string::npos);
}

TEST(Coordination, a_count_that_differs_from_the_plan_stops_everything) {
  Story s(test_config(2, 10));
  s.starts();
  contract::Commit commit = test_commit(s.plans[1], 0);
  commit.reduced_count = 9;
  s.says(0, MessageType::kCommit, commit);
  EXPECT_EQ(s.coordination().stage(), JobStage::kFailed);
  EXPECT_NE(s.report().message.find("returned 9 samples, planned were 10"), std::string::npos);
}

TEST(Coordination, a_commit_of_an_older_fence_is_void) {
  Story s(test_config(1, 10));
  s.starts();
  contract::Commit commit = test_commit(s.plans[1], 0);
  commit.fence.attempt = 1;
  s.says(0, MessageType::kCommit, commit);
  EXPECT_EQ(s.report().progress.step, 0);
  EXPECT_EQ(s.coordination().stage(), JobStage::kRunning);
}

TEST(Coordination, a_stop_saves_at_the_next_free_step_and_ends_with_143) {
  contract::TrainerConfig config = test_config(2, 10, 5);
  config.spec.checkpoint.path = "/checkpoints";
  Story s(config);
  s.starts();
  s.all_commit(1);
  s.says(1, MessageType::kStopRequest, contract::StopRequest{"SIGTERM"});
  EXPECT_EQ(s.report().stage, JobStage::kStopping);
  for (std::int64_t step = 2; step <= 6; ++step) s.all_commit(step);
  EXPECT_TRUE(s.plans[6].stop_after && s.plans[6].checkpoint_after);
  EXPECT_EQ(s.plans.size(), 6u);
  EXPECT_FALSE(contract::decode_finish(*s.got(s.id(0), MessageType::kFinish))->completed);
  EXPECT_EQ(s.coordination().exit_code(), 143);
  EXPECT_EQ(s.report().stage, JobStage::kStopped);
}

TEST(Coordination, a_stop_before_the_start_ends_the_waiting) {
  Story s(test_config(2, 10));
  s.joins(0);
  s.stops();
  EXPECT_NE(s.got(s.id(0), MessageType::kFinish), nullptr);
  EXPECT_EQ(s.coordination().exit_code(), 143);
  s.disconnects(0);
  EXPECT_TRUE(s.coordination().done(s.now));
}

TEST(Coordination, a_stop_while_the_ring_is_built_ends_when_all_are_ready) {
  Story s(test_config(2, 10));
  s.all_join();
  s.stops();
  s.all_ready();
  EXPECT_TRUE(s.plans.empty());
  EXPECT_EQ(s.coordination().stage(), JobStage::kStopped);
}

TEST(Coordination, a_lost_worker_after_the_end_is_no_failure) {
  Story s(test_config(2, 100));
  s.starts();
  s.all_commit(1);
  s.disconnects(0);
  s.disconnects(1);
  EXPECT_EQ(s.coordination().exit_code(), 0);
  EXPECT_FALSE(s.report().failure);
}

TEST(Coordination, what_cannot_be_read_ends_the_attempt) {
  Story s(test_config(1, 10));
  s.starts();
  s.coordination().received(s.id(0), MessageType::kCommit, base::Json::array(), s.now);
  EXPECT_EQ(s.coordination().stage(), JobStage::kFailed);
}

TEST(Coordination, the_report_names_the_straggler) {
  Story s(test_config(4, 64), 64 * 100);
  s.starts();
  for (std::int64_t step = 1; step <= 40; ++step) {
    s.now += 0.2;
    for (int r = 0; r < 4; ++r) {
      contract::Commit commit = test_commit(s.plans.at(step), r, r == 2 ? 0.18 : 0.1);
      commit.step_seconds = 0.2;
      s.says(r, MessageType::kCommit, commit);
    }
  }
  const contract::JobReport report = s.report();
  EXPECT_EQ(report.diagnosis.verdict, "Straggler");
  EXPECT_EQ(report.balance.slowest_rank, 2);
  EXPECT_DOUBLE_EQ(*report.replicas[2].relative_performance, 0.556);
  EXPECT_NEAR(*report.progress.samples_per_second, 64 / 0.2, 1);
  EXPECT_NEAR(*report.replicas[1].samples_per_second, 16 / 0.2, 1);
  EXPECT_NEAR(*report.progress.eta_seconds, 60 * 0.2, 0.5);
  const auto& losses = report.diagnosis.losses;
  EXPECT_NEAR(*losses.compute + *losses.input_wait + *losses.imbalance + *losses.communication, 1, 1e-9);
  EXPECT_GT(report.productive_seconds.at("stragglerWait"), 1.0);
}

TEST(Coordination, at_the_end_the_report_speaks_of_the_whole_run) {
  Story s(test_config(2, 64), 64 * 200);
  s.starts();
  for (std::int64_t step = 1; step <= 200; ++step) {
    s.now += 0.2;
    for (int r = 0; r < 2; ++r) {
      // Slow for most of the run, healthy in its last fifteen seconds.
      contract::Commit commit = test_commit(s.plans.at(step), r, r == 1 && step <= 130 ? 0.18 : 0.1);
      commit.step_seconds = 0.2;
      s.says(r, MessageType::kCommit, commit);
    }
  }
  EXPECT_EQ(s.report().diagnosis.verdict, "CommunicationBound") << s.report().diagnosis.message;
  for (int r = 0; r < 2; ++r)
    s.says(r, MessageType::kEvaluated, contract::Evaluated{200, 0, 5.0, 9, 10, 0.1});
  EXPECT_EQ(s.report().stage, JobStage::kCompleted);
  EXPECT_EQ(s.report().diagnosis.verdict, "Straggler") << s.report().diagnosis.message;
}

TEST(Coordination, the_report_says_which_sharding_is_in_force_and_why) {
  using contract::ShardingPolicy;
  const auto text_of = [](ShardingPolicy policy, std::vector<std::int64_t> files) {
    contract::TrainerConfig config = test_config(2, 10);
    config.spec.dataset.format = "tfrecord";
    config.spec.dataset.sharding = policy;
    Story s(config, 100);
    for (int rank = 0; rank < 2; ++rank) {
      contract::Join join = test_join(rank, 100);
      join.file_samples = files;
      s.joins(rank, join);
    }
    s.all_ready();
    return s.report().stage == JobStage::kFailed ? s.report().message : s.report().sharding;
  };
  EXPECT_EQ(text_of(ShardingPolicy::kAuto, {}),
            "Record: every record of format tfrecord can be read by itself (policy Auto)");
  EXPECT_EQ(text_of(ShardingPolicy::kAuto, {60, 0, 40}),
            "File: files are compressed, so a record can only be reached through those before it (policy Auto); 2 "
            "files for 2 ranks");
  EXPECT_EQ(text_of(ShardingPolicy::kAuto, {100}),
            "File: files are compressed, so a record can only be reached through those before it (policy Auto); 1 "
            "file for 2 ranks, fewer files than ranks: files are cut, and several ranks read the same one");
  EXPECT_EQ(text_of(ShardingPolicy::kFile, {50, 50}), "File: as asked for; 2 files for 2 ranks");
  EXPECT_EQ(text_of(ShardingPolicy::kFile, {100}),
            "dataset.sharding.policy File deals whole files, but the training split has 1 file and the job 2 ranks: "
            "use policy Auto or Record, more files, or fewer ranks");
  EXPECT_EQ(text_of(ShardingPolicy::kOff, {}).find("Off: every rank sees everything, so an epoch is 2 times the 100 "),
            0u);
}

TEST(Coordination, where_every_rank_sees_everything_the_epoch_is_longer_and_the_verdict_says_so) {
  contract::TrainerConfig config = test_config(2, 10);
  config.spec.dataset.sharding = contract::ShardingPolicy::kOff;
  Story s(config, 20);
  s.starts();
  EXPECT_EQ(s.membership(0).target_steps, 4);
  // The ids of both passes together: each twice.
  for (std::int64_t step = 1; step <= 4; ++step) {
    s.now += 0.1;
    const contract::StepPlan plan = s.plans.at(step);
    EXPECT_FALSE(plan.pieces.empty());
    for (int rank = 0; rank < 2; ++rank) {
      contract::Commit commit = test_commit(plan, rank);
      commit.reduced_ids_hash = 0;
      for (std::int64_t at = plan.cuts.front(); at < plan.cuts.back(); ++at)
        commit.reduced_ids_hash += base::mix64(static_cast<std::uint64_t>(at % 20));
      s.says(rank, MessageType::kCommit, commit);
      if (plan.evaluate_after)
        s.says(rank, MessageType::kEvaluated, contract::Evaluated{step, plan.epoch, 5.0, 9, 10, 0.1});
    }
  }
  EXPECT_EQ(s.report().stage, JobStage::kCompleted) << s.report().message;
  EXPECT_EQ(s.report().progress.samples, 40);
  EXPECT_EQ(s.report().replicas[0].consumed, 20);
  EXPECT_EQ(s.report().diagnosis.verdict, "DuplicateData");
}

TEST(Coordination, skipped_records_are_counted_once_and_come_back_with_a_checkpoint) {
  Story s(test_config(2, 10), 100);
  for (int rank = 0; rank < 2; ++rank) {
    contract::Join join = test_join(rank, 100);
    join.checkpoint = {5, 0, 50, "", {25, 25}, {}, {}, {7}};
    s.joins(rank, join);
  }
  s.all_ready();
  EXPECT_EQ(s.report().progress.skipped, 1);
  for (int rank = 0; rank < 2; ++rank) {
    contract::Commit commit = test_commit(s.plans.at(6), rank);
    commit.skipped_ids = {rank == 0 ? 7 : 8};
    s.says(rank, MessageType::kCommit, commit);
  }
  EXPECT_EQ(s.report().progress.skipped, 2);
}

}  // namespace
}  // namespace evenkeel::trainer
