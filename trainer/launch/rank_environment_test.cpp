#include "trainer/launch/rank_environment.h"

#include <gtest/gtest.h>

#include <set>

#include "contract/env.h"

namespace evenkeel::trainer {
namespace {

Environment pod_with(std::map<std::string, std::string> variables) {
  return [variables](const std::string& name) {
    const auto at = variables.find(name);
    return at == variables.end() ? std::nullopt : std::optional<std::string>(at->second);
  };
}

TEST(RankEnvironment, every_rank_of_a_pod_is_told_its_own_place) {
  const auto env = rank_environment({6, 1, 2, "/tmp/l"}, pod_with({}));
  EXPECT_EQ(env.at("EVENKEEL_RANK"), "7");
  EXPECT_EQ(env.at("RANK"), "7");
  EXPECT_EQ(env.at("LOCAL_RANK"), "1");
  EXPECT_EQ(env.at("EVENKEEL_RESTARTS"), "2");
  EXPECT_EQ(env.at("EVENKEEL_TERMINATION_LOG"), "/tmp/l/rank-7.end");
  EXPECT_EQ(env.at("EVENKEEL_METRICS_FILE"), "/tmp/l/rank-7.port");
}

TEST(RankEnvironment, no_two_ranks_share_a_rank_or_a_file) {
  for (const char* name : {"EVENKEEL_RANK", "LOCAL_RANK", "EVENKEEL_TERMINATION_LOG", "EVENKEEL_METRICS_FILE",
                           "EVENKEEL_TRACE"}) {
    std::set<std::string> values;
    for (int local = 0; local < 4; ++local)
      values.insert(rank_environment({4, local, 0, "/d"}, pod_with({{"EVENKEEL_TRACE", "/t"}})).at(name));
    EXPECT_EQ(values.size(), 4u) << name;
  }
}

TEST(RankEnvironment, the_place_of_the_pod_is_left_as_it_is) {
  const auto env = rank_environment({0, 0, 0, "/d"}, pod_with({{"NODE_RANK", "3"}}));
  for (const char* name : {"NODE_RANK", "PET_NODE_RANK", "WORLD_SIZE", "MASTER_ADDR", "EVENKEEL_INCARNATION",
                           "EVENKEEL_POD_NAME", "EVENKEEL_CONFIG"})
    EXPECT_EQ(env.count(name), 0u) << name;
}

TEST(RankEnvironment, the_rank_stands_in_the_name_of_its_trace) {
  const auto env = rank_environment({2, 1, 0, "/d"}, pod_with({{contract::kEnvTrace, "/t/worker-{rank}.trace"}}));
  EXPECT_EQ(env.at(contract::kEnvTrace), "/t/worker-3.trace");
}

TEST(RankEnvironment, a_wish_of_the_user_for_waiting_threads_stays) {
  EXPECT_EQ(rank_environment({}, pod_with({})).at("OMP_WAIT_POLICY"), "passive");
  EXPECT_EQ(rank_environment({}, pod_with({{"OMP_WAIT_POLICY", "active"}})).count("OMP_WAIT_POLICY"), 0u);
}

}  // namespace
}  // namespace evenkeel::trainer
