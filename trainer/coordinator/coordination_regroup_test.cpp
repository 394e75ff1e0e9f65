#include <gtest/gtest.h>

#include <algorithm>

#include "trainer/coordinator/coordination_story.h"

namespace evenkeel::trainer {
namespace {

using contract::JobStage;
using contract::MessageType;
using contract::StateSource;
using testing::Story;

contract::TrainerConfig elastic_config(int ranks, std::int64_t batch, std::int64_t epochs = 1) {
  contract::TrainerConfig config = test_config(ranks, batch, epochs);
  config.spec.restart.scope = contract::RestartScope::kWorker;
  config.spec.restart.rules = {{{64, 65, 69, 76, 78}, false, contract::RestartAction::kFailJob}};
  return config;
}

TEST(Regroup, survivors_do_the_step_of_the_dead_again_with_the_same_samples) {
  Story s(elastic_config(4, 16), 64);
  s.starts();
  s.all_commit(1);
  const contract::StepPlan before = s.plans.at(2);
  s.commits(0, 2);  // the dead one may even have told of it
  s.disconnects(2);
  EXPECT_EQ(contract::decode_regroup(*s.got(s.id(0), MessageType::kRegroup))->fence, (contract::Fence{2, 1, 2}));
  EXPECT_EQ(s.report().stage, JobStage::kRunning);
  for (const int rank : {0, 1, 3}) s.pauses(rank, 1);
  const contract::Membership next = s.membership(3);
  EXPECT_EQ(next.ranks, (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(next.position(), 2);
  EXPECT_EQ(next.source, StateSource::kInPlace);
  EXPECT_EQ(next.restore_step, 1);
  for (const int rank : {0, 1, 3}) s.ready(rank);
  const contract::StepPlan after = s.plans.at(2);
  EXPECT_EQ(after.fence.generation, 2u);
  EXPECT_EQ(after.cuts.front(), before.cuts.front());
  EXPECT_EQ(after.cuts.back(), before.cuts.back());
  EXPECT_EQ(after.cuts[2], after.cuts[3]) << "nothing for the dead";
  EXPECT_EQ(s.report().replicas[2].state, "lost");
  EXPECT_EQ(s.report().failure->rank, 2);
}

TEST(Regroup, a_step_that_one_survivor_has_applied_counts_and_the_others_copy_it) {
  Story s(elastic_config(3, 16), 64);
  s.starts();
  s.all_commit(1);
  s.disconnects(0);
  s.pauses(1, 1);
  s.pauses(2, 2);
  EXPECT_EQ(s.report().progress.step, 2);
  EXPECT_EQ(s.membership(1).source, StateSource::kMemory);
  EXPECT_EQ(s.membership(1).restore_rank, 2);
  EXPECT_EQ(s.membership(1).restore_step, 2);
  s.ready(1);
  s.ready(2);
  EXPECT_EQ(s.plans.at(3).fence.generation, 2u);
  EXPECT_EQ(s.report().progress.samples, 32);
}

TEST(Regroup, commits_of_the_group_that_ended_are_void) {
  Story s(elastic_config(2, 16), 64);
  s.starts();
  const contract::Commit late = test_commit(s.plans.at(1), 0);
  s.disconnects(1);
  s.says(0, MessageType::kCommit, late);
  EXPECT_EQ(s.report().progress.step, 0);
  s.pauses(0, 0);
  s.ready(0);
  s.says(0, MessageType::kCommit, late);
  EXPECT_EQ(s.report().progress.step, 0);
  s.commits(0, 1);
  EXPECT_EQ(s.report().progress.step, 1);
}

TEST(Regroup, a_replacement_is_taken_in_when_all_that_is_planned_is_done) {
  Story s(elastic_config(2, 16), 16 * 20);
  s.starts();
  s.disconnects(1);
  s.pauses(0, 0);
  s.ready(0);
  s.joins(1, test_join(1, 16 * 20), 2, 201);
  EXPECT_EQ(s.got(201, MessageType::kMembership), nullptr);
  for (std::int64_t step = 1; step <= 3; ++step) s.commits(0, step);
  EXPECT_EQ(s.plans.rbegin()->first, 4) << "nothing further is planned while it waits";
  s.commits(0, 4);
  s.pauses(0, 4);
  const auto membership = contract::decode_membership(*s.got(201, MessageType::kMembership));
  EXPECT_EQ(membership->ranks, (std::vector<int>{0, 1}));
  EXPECT_EQ(membership->source, StateSource::kMemory);
  EXPECT_EQ(membership->restore_rank, 0);
  EXPECT_EQ(membership->restore_step, 4);
  EXPECT_EQ(membership->writer, 0);
}

TEST(Regroup, one_of_two_incarnations_works_and_the_highest_wins) {
  Story s(elastic_config(2, 16), 16 * 20);
  s.starts();
  s.joins(1, test_join(1, 16 * 20), 2, 201);  // while the old one still stands in the ring
  EXPECT_NE(s.refusal(s.id(1)).find("taken over by incarnation 2"), std::string::npos);
  s.pauses(0, 0);
  EXPECT_NE(s.got(201, MessageType::kMembership), nullptr);
  s.joins(1, test_join(1, 16 * 20), 1, 202);  // it comes back
  EXPECT_NE(s.refusal(202).find("incarnation 2 holds the rank"), std::string::npos);
}

TEST(Regroup, a_joiner_with_another_plan_is_refused_and_nobody_stops_for_it) {
  Story s(elastic_config(2, 16), 64);
  s.starts();
  s.disconnects(1);
  s.pauses(0, 0);
  s.ready(0);
  contract::Join wrong = test_join(1, 64);
  wrong.plan_hash = "cccc";
  s.joins(1, wrong, 2, 201);
  EXPECT_EQ(contract::decode_refused(*s.got(201, MessageType::kRefused))->exit_code, 78);
  s.commits(0, 1);
  EXPECT_EQ(s.report().progress.step, 1);
}

TEST(Regroup, what_the_dead_had_to_do_is_done_by_the_next_group) {
  contract::TrainerConfig config = elastic_config(3, 64);
  config.spec.checkpoint.path = "/checkpoints";
  Story s(config, 64);
  s.starts();
  for (int rank = 0; rank < 3; ++rank) s.commits(rank, 1);
  s.disconnects(0);  // it was to write the last checkpoint
  s.pauses(1, 1);
  s.pauses(2, 1);
  const contract::Membership next = s.membership(1);
  EXPECT_TRUE(next.evaluate_first);
  EXPECT_TRUE(next.checkpoint_first);
  EXPECT_EQ(next.writer, 1);
  s.ready(1);
  s.ready(2);
  EXPECT_EQ(s.got(s.id(1), MessageType::kFinish), nullptr);
  for (const int rank : {1, 2}) {
    s.says(rank, MessageType::kEvaluated, contract::Evaluated{1, 0, 5.0, 9, 10, 0.1});
    s.says(rank, MessageType::kCheckpointed, contract::Checkpointed{1, rank == 1 ? "step-1" : "", 7, 0.1, ""});
  }
  EXPECT_TRUE(contract::decode_finish(*s.got(s.id(1), MessageType::kFinish))->completed);
  EXPECT_EQ(s.coordination().exit_code(), 0);
}

TEST(Regroup, a_writer_that_lives_is_waited_for_and_nothing_is_written_twice) {
  contract::TrainerConfig config = elastic_config(3, 64);
  config.spec.checkpoint.path = "/checkpoints";
  Story s(config, 64);
  s.starts();
  for (int rank = 0; rank < 3; ++rank) {
    s.commits(rank, 1);
    s.says(rank, MessageType::kEvaluated, contract::Evaluated{1, 0, 5.0, 9, 10, 0.1});
  }
  s.disconnects(2);
  contract::Paused writing{s.fence(), 1, test_commit(s.plans.at(1), 0), 1, 1};
  s.says(0, MessageType::kPaused, writing);
  s.pauses(1, 1);
  EXPECT_FALSE(s.membership(0).checkpoint_first);
  EXPECT_FALSE(s.membership(0).evaluate_first);
  s.ready(0);
  s.ready(1);
  EXPECT_EQ(s.got(s.id(0), MessageType::kFinish), nullptr);
  s.says(0, MessageType::kCheckpointed, contract::Checkpointed{1, "step-1", 7, 0.1, ""});
  EXPECT_NE(s.got(s.id(0), MessageType::kFinish), nullptr);
}

TEST(Regroup, a_ring_that_breaks_without_a_death_is_built_anew) {
  Story s(elastic_config(2, 16), 64);
  s.starts();
  s.says(0, MessageType::kBroken, contract::Broken{s.fence(), "connection reset"});
  EXPECT_EQ(s.got(s.id(0), MessageType::kRegroup), nullptr);  // a death may be about to be noticed
  s.passes(0.6);
  EXPECT_NE(s.got(s.id(1), MessageType::kRegroup), nullptr);
  s.pauses(0, 0);
  s.pauses(1, 0);
  EXPECT_EQ(s.membership(0).ranks.size(), 2u);
}

TEST(Regroup, groups_that_commit_nothing_come_to_an_end) {
  Story s(elastic_config(2, 16), 64);
  s.starts();
  for (int i = 0; i < 11 && s.coordination().stage() == JobStage::kRunning; ++i) {
    s.says(0, MessageType::kBroken, contract::Broken{s.fence(), "connection reset"});
    for (const int rank : {0, 1}) s.says(rank, MessageType::kHeartbeat, contract::Heartbeat{1, "other"});
    s.passes(0.6);
    for (const int rank : {0, 1}) s.pauses(rank, 0);
    for (const int rank : {0, 1}) s.ready(rank);
  }
  EXPECT_EQ(s.coordination().exit_code(), 75);
  EXPECT_NE(s.report().message.find("committed no step"), std::string::npos) << s.report().message;
}

TEST(Regroup, the_last_rank_takes_the_state_with_it) {
  Story s(elastic_config(2, 16), 64);
  s.starts();
  s.disconnects(0);
  s.disconnects(1);
  EXPECT_EQ(s.coordination().stage(), JobStage::kFailed);
  EXPECT_EQ(s.coordination().exit_code(), 75);
}

TEST(Regroup, below_the_minimum_survivors_hold_until_another_one_comes) {
  contract::TrainerConfig config = elastic_config(3, 16);
  config.spec.workers.min_replicas = 2;
  Story s(config, 64);
  s.starts();
  s.disconnects(1);
  s.disconnects(2);
  s.pauses(0, 0);
  EXPECT_EQ(s.membership(0).ranks.size(), 3u) << "the first one: no other has come";
  s.joins(2, test_join(2, 64), 2, 202);
  EXPECT_EQ(s.membership(0).ranks, (std::vector<int>{0, 2}));
}

TEST(Regroup, an_elastic_job_begins_with_the_minimum_after_a_while) {
  contract::TrainerConfig config = elastic_config(4, 16);
  config.spec.workers.min_replicas = 2;
  Story s(config, 64);
  s.joins(0);
  s.joins(3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(s.got(s.id(0), MessageType::kMembership), nullptr);
    for (const int rank : {0, 3}) s.says(rank, MessageType::kHeartbeat, contract::Heartbeat{0, "other"});
    s.passes(1.8);
  }
  EXPECT_EQ(s.membership(3).ranks, (std::vector<int>{0, 3}));
  EXPECT_EQ(s.membership(3).position(), 1);
}

TEST(Regroup, a_new_coordinator_goes_on_from_what_the_ranks_hold) {
  contract::TrainerConfig config = elastic_config(3, 16);
  config.coordinator_incarnation = 2;
  Story s(config, 64);
  for (const int rank : {0, 2}) {
    contract::Join join = test_join(rank, 64);
    join.held = contract::CheckpointPosition{rank == 2 ? 2 : 1, 0, rank == 2 ? 32 : 16, "", {11, 11, 10}, {}};
    join.checkpoint = contract::CheckpointPosition{1, 0, 16, "", {6, 5, 5}, {}};
    s.joins(rank, join);
  }
  EXPECT_EQ(s.got(s.id(0), MessageType::kMembership), nullptr);  // the third may be on its way
  for (const int rank : {0, 2}) s.says(rank, MessageType::kHeartbeat, contract::Heartbeat{0, "other"});
  s.passes(1.0);
  for (const int rank : {0, 2}) s.says(rank, MessageType::kHeartbeat, contract::Heartbeat{0, "other"});
  s.passes(1.5);
  const contract::Membership membership = s.membership(0);
  EXPECT_EQ(membership.fence, (contract::Fence{2, 2, 1}));
  EXPECT_EQ(membership.source, StateSource::kMemory);
  EXPECT_EQ(membership.restore_rank, 2);
  EXPECT_EQ(membership.restore_step, 2);
  s.ready(0);
  s.ready(2);
  EXPECT_EQ(s.plans.begin()->first, 3);
  EXPECT_EQ(s.plans.at(3).cuts.front(), 32);
}

TEST(Regroup, a_rank_that_answers_but_makes_no_step_is_left_behind) {
  Story s(elastic_config(3, 16), 16 * 50);
  s.starts();
  s.all_commit(1);
  for (int i = 0; i < 8; ++i) {
    s.says(0, MessageType::kHeartbeat, contract::Heartbeat{2, "collective_wait"});
    s.says(1, MessageType::kHeartbeat, contract::Heartbeat{2, "forward"});
    s.says(2, MessageType::kHeartbeat, contract::Heartbeat{2, "collective_wait"});
    s.passes(1.5);
  }
  EXPECT_NE(s.refusal(s.id(1)).find("\"forward\" of step 2"), std::string::npos) << s.refusal(s.id(1));
  s.pauses(0, 1);
  s.pauses(2, 1);
  EXPECT_EQ(s.membership(0).ranks, (std::vector<int>{0, 2}));
}

TEST(Regroup, a_failure_that_no_new_attempt_would_mend_ends_the_job) {
  Story s(elastic_config(2, 16), 64);
  s.starts();
  s.says(1, MessageType::kFailure, contract::Failure{65, "record 3 is truncated", 1});
  EXPECT_EQ(s.coordination().exit_code(), 65);

  Story other(elastic_config(2, 16), 64);
  other.starts();
  other.says(1, MessageType::kFailure, contract::Failure{70, "a bug", 1});
  EXPECT_EQ(other.coordination().stage(), JobStage::kRunning);
  EXPECT_EQ(other.report().failure->exit_code, 70);
  other.disconnects(1);
  other.pauses(0, 0);
  EXPECT_EQ(other.membership(0).ranks, (std::vector<int>{0}));
}

TEST(Regroup, a_stop_while_a_group_forms_still_ends_with_a_checkpoint) {
  contract::TrainerConfig config = elastic_config(2, 16, 5);
  config.spec.checkpoint.path = "/checkpoints";
  Story s(config, 64);
  s.starts();
  s.all_commit(1);
  s.disconnects(1);
  s.says(0, MessageType::kStopRequest, contract::StopRequest{"SIGTERM"});
  s.pauses(0, 1);
  s.ready(0);
  EXPECT_TRUE(s.plans.at(2).stop_after && s.plans.at(2).checkpoint_after);
  EXPECT_EQ(s.report().stage, JobStage::kStopping);
}

TEST(Regroup, a_job_that_grows_takes_its_batch_along_and_the_rate_follows_slowly) {
  contract::TrainerConfig config = elastic_config(2, 32);
  config.spec.workers.max_replicas = 3;
  Story s(config, 32 * 40);
  s.starts();
  s.coordination().set_wanted(3, s.now);
  s.joins(2, test_join(2, 32 * 40));
  for (std::int64_t step = 1; step <= 4; ++step) s.all_commit(step);
  for (const int rank : {0, 1}) s.pauses(rank, 4);
  EXPECT_EQ(s.membership(2).ranks.size(), 3u);
  EXPECT_EQ(s.membership(2).target_steps, 4 + (32 * 36 + 47) / 48);
  for (const int rank : {0, 1, 2}) s.ready(rank);
  EXPECT_EQ(s.plans.at(5).planned(), 48);
  EXPECT_EQ(s.plans.at(5).global_batch, 48);
  EXPECT_NEAR(s.plans.at(5).rate_batch, 32 + 16.0 / 100, 1e-9);
  EXPECT_EQ(s.report().ranks, 3);
}

TEST(Regroup, a_job_that_shrinks_sends_the_surplus_home_at_a_step_boundary) {
  contract::TrainerConfig config = elastic_config(3, 48);
  config.spec.workers.min_replicas = 1;
  Story s(config, 48 * 40);
  s.starts();
  s.coordination().set_wanted(2, s.now);
  s.all_commit(1);
  EXPECT_EQ(s.got(s.id(2), MessageType::kFinish), nullptr) << "what is planned is done first";
  for (std::int64_t step = 2; step <= 4; ++step) s.all_commit(step);
  EXPECT_TRUE(contract::decode_finish(*s.got(s.id(2), MessageType::kFinish))->completed);
  for (const int rank : {0, 1}) s.pauses(rank, 4);
  for (const int rank : {0, 1}) s.ready(rank);
  EXPECT_EQ(s.plans.at(5).planned(), 32);
  EXPECT_EQ(s.report().replicas[2].state, "done");
  s.disconnects(2);
  EXPECT_EQ(s.report().stage, JobStage::kRunning);
  EXPECT_FALSE(s.report().failure);
  s.joins(2, test_join(2, 48 * 40), 2, 205);
  EXPECT_NE(s.refusal(205).find("is not one of the job's 2 ranks"), std::string::npos);
}

TEST(Regroup, one_rank_that_is_asked_to_stop_leaves_and_the_others_go_on) {
  Story s(elastic_config(3, 48), 48 * 40);
  s.starts();
  s.says(1, MessageType::kStopRequest, contract::StopRequest{"SIGTERM"});
  s.all_commit(1);
  EXPECT_EQ(s.report().stage, JobStage::kRunning);
  s.passes(1.0);
  for (const int rank : {0, 1, 2}) s.says(rank, MessageType::kHeartbeat, contract::Heartbeat{1, "forward"});
  s.passes(1.2);  // nobody else was asked
  for (std::int64_t step = 2; step <= 5; ++step) s.all_commit(step);
  const auto finish = contract::decode_finish(*s.got(s.id(1), MessageType::kFinish));
  EXPECT_FALSE(finish->completed);
  for (const int rank : {0, 2}) s.pauses(rank, 5);
  EXPECT_EQ(s.membership(0).ranks, (std::vector<int>{0, 2}));
  s.disconnects(1);
  EXPECT_FALSE(s.report().failure);
  s.joins(1, test_join(1, 48 * 40), 2, 201);
  EXPECT_EQ(s.refusal(201), "");
}

TEST(Regroup, all_that_are_asked_to_stop_end_the_job_with_a_checkpoint) {
  contract::TrainerConfig config = elastic_config(2, 16, 5);
  config.spec.checkpoint.path = "/checkpoints";
  Story s(config, 64);
  s.starts();
  s.says(0, MessageType::kStopRequest, contract::StopRequest{"SIGTERM"});
  EXPECT_EQ(s.report().stage, JobStage::kRunning);
  s.stops();  // the coordinator too: a suspended job
  EXPECT_EQ(s.report().stage, JobStage::kStopping);
  for (std::int64_t step = 1; step <= 5; ++step) s.all_commit(step);
  EXPECT_EQ(s.coordination().exit_code(), 143);
}

TEST(Regroup, a_coordinator_that_is_asked_alone_leaves_its_ranks_to_the_next_one) {
  Story s(elastic_config(2, 16), 64);
  s.starts();
  s.stops();
  s.passes(1.0);
  for (const int rank : {0, 1}) s.says(rank, MessageType::kHeartbeat, contract::Heartbeat{1, "forward"});
  EXPECT_FALSE(s.coordination().done(s.now));
  s.passes(1.1);
  EXPECT_TRUE(s.coordination().done(s.now));
  EXPECT_EQ(s.coordination().exit_code(), 75);
  EXPECT_EQ(s.got(s.id(0), MessageType::kFinish), nullptr);
  EXPECT_EQ(s.got(s.id(0), MessageType::kAbort), nullptr);
}

TEST(Regroup, a_reader_that_repeats_a_record_is_caught_at_the_end_of_the_epoch) {
  Story s(elastic_config(1, 16), 32);
  s.starts();
  contract::Commit commit = test_commit(s.plans.at(1), 0);
  commit.reduced_ids_hash += base::mix64(3) - base::mix64(4);  // 3 twice, 4 never
  s.says(0, MessageType::kCommit, commit);
  s.commits(0, 2);
  EXPECT_EQ(s.coordination().stage(), JobStage::kFailed);
  EXPECT_NE(s.report().message.find("sample oracle"), std::string::npos);
}

TEST(Regroup, what_a_dead_rank_owned_goes_to_the_others_and_the_first_plan_tells_who_owns_what) {
  contract::TrainerConfig config = elastic_config(3, 12);
  config.spec.dataset.sharding = contract::ShardingPolicy::kFile;
  Story s(config, 90);
  for (int rank = 0; rank < 3; ++rank) {
    contract::Join join = test_join(rank, 90);
    join.file_samples = {30, 30, 30};
    s.joins(rank, join);
  }
  s.all_ready();
  s.all_commit(1);
  s.disconnects(1);
  for (const int rank : {0, 2}) s.pauses(rank, 1);
  for (const int rank : {0, 2}) s.ready(rank);
  const contract::StepPlan plan = s.plans.at(2);
  std::int64_t told = 0;
  for (const contract::Piece& piece : plan.pieces) {
    EXPECT_NE(piece.rank, 1);
    told += piece.samples();
  }
  EXPECT_EQ(told, 78) << "all that is not committed";
  EXPECT_EQ(plan.planned(), 12);
}

// Rank 3 of 4 needs 40 ms a sample where the others need 1, and each must have 16 (statistics of its own batch).
class SlowRank {
 public:
  SlowRank() : story(config(), 64 * 1000) { story.starts(); }

  void steps(int n, double others_seconds = 0.001) {
    for (int i = 0; i < n; ++i) step(others_seconds);
  }
  std::vector<int> group() const { return story.membership(0).ranks; }
  // All of the group leave it where it stands, and the next one begins.
  void regroup() {
    const std::int64_t at = story.report().progress.step;
    for (const int rank : group()) story.pauses(rank, at);
    for (const int rank : group()) story.ready(rank);
  }
  bool regroups() const { return story.report().message.starts_with("a new group forms"); }
  const contract::Remedy* remedy() {
    report = story.report();
    for (const contract::Remedy& one : report.diagnosis.remedies) {
      if (one.action == "go on without rank 3") return &one;
    }
    return nullptr;
  }

  Story story;
  contract::JobReport report;

 private:
  static contract::TrainerConfig config() {
    contract::TrainerConfig config = elastic_config(4, 64);
    config.spec.balance_mode = contract::BalanceMode::kRebalance;
    config.spec.workers.min_replicas = 3;
    config.spec.model.preset = "resnet20";
    config.spec.training.batch_norm.statistics = contract::BatchNormStatistics::kLocal;
    return config;
  }

  void step(double others_seconds) {
    if (regroups()) regroup();
    const contract::StepPlan plan = story.plans.at(story.report().progress.step + 1);
    const std::vector<int> ranks = group();
    std::vector<double> own;
    for (const int rank : ranks) {
      const auto at = static_cast<std::size_t>(rank);
      own.push_back(static_cast<double>(plan.cuts[at + 1] - plan.cuts[at]) * (rank == 3 ? 0.04 : others_seconds));
    }
    const double seconds = *std::max_element(own.begin(), own.end()) + 0.002;
    story.now += seconds;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      contract::Commit commit = test_commit(plan, ranks[i], own[i]);
      commit.step_seconds = seconds;
      story.says(ranks[i], MessageType::kCommit, commit);
    }
    if (story.plans.size() > 8) story.says(3, MessageType::kHeartbeat, contract::Heartbeat{0, "other"});
  }
};

TEST(Regroup, the_others_go_on_without_a_rank_that_only_keeps_them_waiting) {
  SlowRank s;
  s.steps(90);
  EXPECT_EQ(s.group(), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(s.story.got(s.story.id(3), MessageType::kFinish), nullptr) << "its pod stays";
  EXPECT_EQ(s.story.plans.rbegin()->second.planned(), 64) << "the batch is kept";
  ASSERT_NE(s.remedy(), nullptr);
  EXPECT_EQ(s.remedy()->state, contract::RemedyState::kApplied);
  EXPECT_NEAR(s.remedy()->measured_gain.value_or(0), s.remedy()->predicted_gain, 0.05 * s.remedy()->predicted_gain);
  EXPECT_EQ(s.story.report().replicas[3].state, "joined");
  EXPECT_EQ(s.story.report().joined, 4);
}

TEST(Regroup, a_rank_that_rests_is_called_back_where_too_few_are_left) {
  SlowRank s;
  s.steps(90);
  s.story.disconnects(1);
  for (const int rank : {0, 2}) s.story.pauses(rank, s.story.report().progress.step);
  EXPECT_EQ(s.group(), (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(s.story.membership(3).source, StateSource::kMemory) << "it has missed steps";
}

TEST(Regroup, a_rank_that_rested_for_nothing_is_taken_in_again) {
  SlowRank s;
  while (s.group().size() == 4) {
    s.steps(1);
    ASSERT_LT(s.story.report().progress.step, 90);
  }
  s.steps(40, 0.04);  // whatever it was has come to all of them
  EXPECT_EQ(s.group(), (std::vector<int>{0, 1, 2, 3}));
  ASSERT_NE(s.remedy(), nullptr);
  EXPECT_EQ(s.remedy()->state, contract::RemedyState::kReverted);
}

TEST(Regroup, a_rank_that_rests_goes_when_it_is_asked_to) {
  SlowRank s;
  s.steps(90);
  s.story.says(3, MessageType::kStopRequest, contract::StopRequest{"SIGTERM"});
  s.story.passes(1.0);
  for (int rank = 0; rank < 4; ++rank) s.story.says(rank, MessageType::kHeartbeat, contract::Heartbeat{0, "other"});
  s.story.passes(1.2);
  s.steps(6);
  EXPECT_NE(s.story.got(s.story.id(3), MessageType::kFinish), nullptr);
  EXPECT_EQ(s.story.report().stage, JobStage::kRunning);
}

}  // namespace
}  // namespace evenkeel::trainer
