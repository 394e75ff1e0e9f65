// Ranks that share a pod die together and come back one after another.
#include <gtest/gtest.h>

#include "trainer/coordinator/coordination_story.h"

namespace evenkeel::trainer {
namespace {

using contract::JobStage;
using contract::MessageType;
using contract::StateSource;
using testing::Story;

// Two pods of two ranks.
contract::TrainerConfig two_pods() {
  contract::TrainerConfig config = test_config(4, 16, 3);
  config.spec.workers.replicas = 2;
  config.spec.workers.devices_per_replica = 2;
  config.spec.restart.scope = contract::RestartScope::kWorker;
  config.spec.restart.rules = {{{64, 65, 69, 76, 78}, false, contract::RestartAction::kFailJob}};
  return config;
}

TEST(RanksOfAPod, die_at_once_and_the_others_go_on_in_one_group) {
  Story s(two_pods(), 64);
  s.starts();
  s.all_commit(1);
  s.disconnects(2);
  s.disconnects(3);
  EXPECT_EQ(s.report().generation, 2u) << "two deaths, one change of the group";
  for (const int rank : {0, 1}) s.pauses(rank, 1);
  EXPECT_EQ(s.membership(1).ranks, (std::vector<int>{0, 1}));
  EXPECT_EQ(s.membership(1).source, StateSource::kInPlace);
  for (const int rank : {0, 1}) s.ready(rank);
  EXPECT_EQ(s.plans.at(2).planned(), 16) << "a death leaves the batch alone";
  for (const int rank : {2, 3}) EXPECT_EQ(s.report().replicas[static_cast<std::size_t>(rank)].state, "lost");
}

TEST(RanksOfAPod, may_also_die_while_the_others_leave_their_group) {
  Story s(two_pods(), 64);
  s.starts();
  s.all_commit(1);
  s.disconnects(3);
  s.pauses(0, 1);
  s.pauses(1, 1);
  s.disconnects(2);
  EXPECT_EQ(s.membership(0).ranks, (std::vector<int>{0, 1}));
  EXPECT_EQ(s.report().stage, JobStage::kRunning);
}

TEST(RanksOfAPod, fall_silent_together) {
  Story s(two_pods(), 64);
  s.starts();
  s.all_commit(1);
  for (double at = 0.5; at <= 2.5; at += 0.5) {
    for (const int rank : {0, 1}) s.says(rank, MessageType::kHeartbeat, contract::Heartbeat{});
    s.passes(0.5);
  }
  EXPECT_EQ(s.report().generation, 2u);
  for (const int rank : {0, 1}) s.pauses(rank, 1);
  EXPECT_EQ(s.membership(0).ranks, (std::vector<int>{0, 1}));
}

TEST(RanksOfAPod, come_back_and_copy_what_the_others_hold) {
  Story s(two_pods(), 64);
  s.starts();
  s.all_commit(1);
  s.disconnects(2);
  s.disconnects(3);
  for (const int rank : {0, 1}) s.pauses(rank, 1);
  for (const int rank : {0, 1}) s.ready(rank);
  for (const int rank : {2, 3}) s.joins(rank, test_join(rank, 64), 1024);  // the first process of the next pod
  for (std::int64_t step = 2; s.report().generation == 2u && step <= 5; ++step)
    for (const int rank : {0, 1}) s.commits(rank, step);
  const std::int64_t held = s.report().progress.step;
  for (const int rank : {0, 1}) s.pauses(rank, held);
  const contract::Membership next = s.membership(3);
  EXPECT_EQ(next.ranks, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(next.source, StateSource::kMemory);
  EXPECT_EQ(next.restore_rank, 0);
  EXPECT_EQ(next.restore_step, held);
}

TEST(RanksOfAPod, one_that_was_started_again_takes_the_place_of_its_predecessor) {
  Story s(two_pods(), 64);
  s.starts();
  s.all_commit(1);
  // It was only held up: its connection still stands.
  s.joins(3, test_join(3, 64), 2, 777);
  EXPECT_NE(s.refusal(s.id(3)).find("taken over"), std::string::npos);
  EXPECT_EQ(s.report().generation, 2u);
  s.joins(3, test_join(3, 64), 1, 778);
  EXPECT_NE(s.refusal(778).find("holds the rank"), std::string::npos) << "an older process never comes back";
}

}  // namespace
}  // namespace evenkeel::trainer
