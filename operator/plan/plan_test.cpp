#include "operator/plan/plan.h"

#include <gtest/gtest.h>

#include <set>

#include "contract/job/manifest_fixture.h"
#include "contract/job/validate.h"
#include "operator/plan/environment.h"

namespace evenkeel::oper {
namespace {

contract::TrainingJob job_of(int replicas) {
  base::Json manifest = contract::short_manifest();
  manifest["metadata"] = {{"name", "t"}, {"namespace", "a"}, {"uid", "0123456789abcdef"}};
  manifest["spec"]["workers"]["replicas"] = replicas;
  return contract::decode_job(manifest).value();
}

std::string value_of(const std::vector<EnvironmentVariable>& env, const std::string& name) {
  for (const EnvironmentVariable& variable : env) {
    if (variable.name == name) return variable.value;
  }
  return "absent";
}

TEST(Plan, names_and_addresses_come_from_one_place) {
  const JobPlan plan = make_plan(job_of(3), 2, 5);
  ASSERT_EQ(plan.pods.size(), 4u);
  EXPECT_EQ(plan.pods[0].name, "t-coordinator-0-5");
  EXPECT_EQ(plan.pods[3].name, "t-worker-2-5");
  EXPECT_EQ(plan.pods[3].host_name, "t-worker-2");
  EXPECT_EQ(plan.pods[3].address, "t-worker-2.t.a.svc");
  EXPECT_EQ(plan.config_map, "t-config-2");
  EXPECT_EQ(plan.secret, "t-key-01234567");
  EXPECT_EQ(plan.config.attempt, 2u);
  EXPECT_EQ(plan.config.coordinator_incarnation, 5u);
  EXPECT_EQ(plan.config.coordinator_host, "t-coordinator-0.t.a.svc");
  EXPECT_EQ(plan.config.ranks, 3);
}

TEST(Plan, prints_itself) {
  const std::string text = to_text(make_plan(job_of(2), 1, 1));
  EXPECT_NE(text.find("attempt 1"), std::string::npos);
  EXPECT_NE(text.find("worker 1: pod t-worker-1-1 at t-worker-1.t.a.svc"), std::string::npos);
}

TEST(Plan, the_trainer_reads_back_what_the_plan_configures) {
  const JobPlan plan = make_plan(job_of(2), 3, 4);
  const auto read = contract::decode_trainer_config(contract::to_json(plan.config));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->coordinator_host, plan.config.coordinator_host);
  EXPECT_EQ(read->ranks, 2);
}

TEST(Environment, no_name_comes_twice) {
  const JobPlan plan = make_plan(job_of(3), 1, 1);
  for (const PodPlan& pod : plan.pods) {
    std::set<std::string> names;
    for (const EnvironmentVariable& variable : environment_of(plan, pod)) {
      EXPECT_TRUE(names.insert(variable.name).second) << variable.name;
      EXPECT_TRUE(is_reserved_variable(variable.name)) << variable.name;
    }
  }
}

TEST(Environment, ranks_and_world_size_agree) {
  const JobPlan plan = make_plan(job_of(4), 1, 1);
  const auto env = environment_of(plan, plan.pods[3]);
  EXPECT_EQ(value_of(env, "RANK"), "2");
  EXPECT_EQ(value_of(env, "EVENKEEL_RANK"), "2");
  EXPECT_EQ(value_of(env, "WORLD_SIZE"), "4");
  EXPECT_EQ(value_of(env, "MASTER_ADDR"), "t-worker-0.t.a.svc");
  EXPECT_EQ(value_of(env, "PET_NNODES"), "4");
  EXPECT_EQ(value_of(environment_of(plan, plan.pods[0]), "RANK"), "absent");
}

TEST(Environment, a_pod_of_several_ranks_is_told_the_first_of_them_and_how_many_there_are) {
  base::Json manifest = contract::short_manifest();
  manifest["metadata"] = {{"name", "t"}, {"namespace", "a"}, {"uid", "0123456789abcdef"}};
  manifest["spec"]["workers"] = {{"replicas", 3}, {"devicesPerReplica", 4}};
  const JobPlan plan = make_plan(contract::decode_job(manifest).value(), 1, 1);
  EXPECT_EQ(plan.ranks, 12);
  EXPECT_EQ(plan.config.ranks, 12);
  const auto env = environment_of(plan, plan.pods[3]);
  EXPECT_EQ(value_of(env, "RANK"), "8");
  EXPECT_EQ(value_of(env, "EVENKEEL_RANK"), "8");
  EXPECT_EQ(value_of(env, "LOCAL_RANK"), "0");
  EXPECT_EQ(value_of(env, "NODE_RANK"), "2");
  EXPECT_EQ(value_of(env, "WORLD_SIZE"), "12");
  EXPECT_EQ(value_of(env, "PET_NNODES"), "3");
  EXPECT_EQ(value_of(env, "PET_NPROC_PER_NODE"), "4");
  EXPECT_EQ(value_of(env, "PET_NODE_RANK"), "2");
  EXPECT_NE(to_text(plan).find("worker 2: pod t-worker-2-1 at t-worker-2.t.a.svc, ranks 8 to 11"), std::string::npos);
}

TEST(Environment, tensorflow_sees_workers_only_and_the_same_cluster_on_all_ranks) {
  const JobPlan plan = make_plan(job_of(3), 1, 1);
  base::Json cluster;
  for (int rank = 0; rank < 3; ++rank) {
    const base::Json config = base::parse_json(tf_config(plan, rank)).value();
    ASSERT_EQ(config["cluster"].size(), 1u);
    ASSERT_EQ(config["cluster"]["worker"].size(), 3u);
    EXPECT_EQ(config["cluster"]["worker"][1], "t-worker-1.t.a.svc:9402");
    EXPECT_EQ(base::dump_json(config["task"]), R"({"type":"worker","index":)" + std::to_string(rank) + "}");
    if (rank > 0) {
      EXPECT_EQ(config["cluster"], cluster);
    }
    cluster = config["cluster"];
  }
}

TEST(Environment, a_variable_that_would_keep_a_pod_from_starting_is_left_out) {
  const JobPlan plan = make_plan(job_of(4096), 1, 1);
  for (const EnvironmentVariable& variable : environment_of(plan, plan.pods[1])) {
    EXPECT_LT(variable.value.size(), kMaxTfConfigBytes) << variable.name;
  }
}

}  // namespace
}  // namespace evenkeel::oper
