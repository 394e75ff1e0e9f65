#include "trainer/config/settings.h"

#include <gtest/gtest.h>

#include <map>

#include "base/files_fake.h"
#include "contract/env.h"
#include "contract/job/validate.h"

namespace evenkeel::trainer {
namespace {

using Variables = std::map<std::string, std::string>;

contract::TrainerConfig config() {
  contract::TrainerConfig config;
  config.job_name = "mnist";
  config.job_namespace = "ml";
  config.job_uid = "uid";
  config.attempt = 2;
  config.coordinator_host = "mnist-coordinator-0.mnist.ml.svc";
  config.ranks = 2;
  auto spec = base::parse_json(R"({"workers": {"replicas": 2}, "model": {"preset": "mlp"},
    "dataset": {"format": "idx", "path": "/data"}, "training": {"epochs": 1, "batchSize": {"global": 8}}})");
  config.spec_json = contract::with_defaults(*spec);
  return config;
}

base::Result<Settings> read(Variables variables,
                            std::string config_text = base::dump_json(to_json(config()))) {
  base::FakeFiles files;
  files.put("/config/trainer.json", config_text);
  files.put("/key/key", std::string(32, 'k'));
  files.put("/key/short", "k");
  variables.try_emplace(contract::kEnvConfig, "/config/trainer.json");
  variables.try_emplace(contract::kEnvKeyFile, "/key/key");
  variables.try_emplace(contract::kEnvRole, "worker");
  return read_settings(
      [&variables](const std::string& name) {
        auto at = variables.find(name);
        return at == variables.end() ? std::nullopt : std::optional<std::string>(at->second);
      },
      files);
}

TEST(Settings, what_the_operator_writes_is_read_back) {
  auto settings =
      read({{contract::kEnvRank, "1"}, {contract::kEnvIncarnation, "3"}, {contract::kEnvPodIp, "10.1.2.3"}});
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings->rank, 1);
  EXPECT_EQ(settings->incarnation, 3);
  EXPECT_EQ(settings->bind_address, "10.1.2.3");
  EXPECT_EQ(settings->metrics_port, 9400);
  EXPECT_EQ(settings->config.attempt, 2u);
  EXPECT_EQ(settings->config.spec.global_batch(), 8);
  EXPECT_EQ(base::dump_json(to_json(settings->config)), base::dump_json(to_json(config())));
}

TEST(Settings, a_later_process_of_a_rank_is_above_all_earlier_ones_in_its_pod_and_before_it) {
  std::int64_t last = 0;
  for (const char* incarnation : {"1", "2", "1048576"}) {
    for (const char* restarts : {"0", "1", "1023"}) {
      const auto settings =
          read({{contract::kEnvIncarnation, incarnation}, {contract::kEnvRestarts, restarts}});
      ASSERT_TRUE(settings.ok()) << settings.error().message;
      EXPECT_GT(settings->process_incarnation(), last);
      last = settings->process_incarnation();
    }
  }
  EXPECT_NE(read({{contract::kEnvRestarts, "1024"}}).error().message.find("EVENKEEL_RESTARTS"), std::string::npos);
}

TEST(Settings, shared_memory_is_used_unless_it_is_switched_off) {
  EXPECT_TRUE(read({})->shared_memory);
  EXPECT_TRUE(read({{contract::kEnvSharedMemory, "on"}})->shared_memory);
  EXPECT_FALSE(read({{contract::kEnvSharedMemory, "off"}})->shared_memory);
  const auto mistaken = read({{contract::kEnvSharedMemory, "no"}});
  ASSERT_FALSE(mistaken.ok());
  EXPECT_NE(mistaken.error().message.find("EVENKEEL_SHARED_MEMORY: 'no'"), std::string::npos);
}

TEST(Settings, each_mistake_names_its_variable) {
  EXPECT_NE(read({{contract::kEnvRank, "2"}}).error().message.find("EVENKEEL_RANK"), std::string::npos);
  EXPECT_NE(read({{contract::kEnvRank, "x"}}).error().message.find("'x'"), std::string::npos);
  EXPECT_NE(read({{contract::kEnvKeyFile, "/key/short"}}).error().message.find("EVENKEEL_KEY_FILE"),
            std::string::npos);
  EXPECT_NE(read({{contract::kEnvConfig, ""}}).error().message.find("EVENKEEL_CONFIG"), std::string::npos);
  EXPECT_FALSE(read({{contract::kEnvRole, "captain"}}).ok());
}

TEST(Settings, another_version_of_the_configuration_is_a_mismatch) {
  base::Json json = to_json(config());
  json["version"] = 2;
  auto settings = read({}, base::dump_json(json));
  ASSERT_FALSE(settings.ok());
  EXPECT_EQ(settings.error().code, base::ErrorCode::kMismatch);
}

TEST(Settings, an_unknown_member_is_an_error) {
  base::Json json = to_json(config());
  json["rankz"] = 2;
  EXPECT_NE(read({}, base::dump_json(json)).error().message.find("rankz"), std::string::npos);
}

}  // namespace
}  // namespace evenkeel::trainer
