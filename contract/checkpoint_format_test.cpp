#include "contract/checkpoint_format.h"

#include <gtest/gtest.h>

namespace evenkeel::contract {
namespace {

CheckpointManifest full() {
  CheckpointManifest m;
  m.job_uid = "uid-1";
  m.step = 12;
  m.epoch = 1;
  m.cursor = 48;
  m.samples = 148;
  m.optimizer_steps = 11;
  m.consumed = {74, 74};
  m.owned = {{0, 10, 20}, {1, 60, 64}};
  m.poison = {7, 99};
  m.rate_batch = 40.5;
  m.seed = 18446744073709551615u;
  m.shuffle_seed = 3;
  m.attempt = 4294967295u;
  m.ranks = 2;
  m.plan_hash = "abc";
  m.plan_parts = {{"dense_1", "0f"}};
  m.files = {{"weights.safetensors", 4096, 3735928559u}};
  return m;
}

TEST(CheckpointManifest, comes_back_as_it_was_written) {
  const Json json = to_json(full());
  const auto again = decode_manifest(json);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(to_json(*again), json);
  EXPECT_EQ(again->optimizer_steps, 11);
  EXPECT_EQ(again->owned, full().owned);
  EXPECT_EQ(again->poison, full().poison);
  EXPECT_EQ(again->seed, 18446744073709551615u);
}

TEST(CheckpointManifest, a_batch_that_no_rate_is_for_is_refused) {
  Json json = to_json(full());
  json["rateBatch"] = -1;
  const auto refused = decode_manifest(json);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("rateBatch"), std::string::npos) << refused.error().message;
  json.erase("rateBatch");
  EXPECT_EQ(decode_manifest(json)->rate_batch, 0);
}

TEST(CheckpointManifest, without_a_count_of_updates_every_step_was_one) {
  Json json = to_json(full());
  json.erase("optimizerSteps");
  EXPECT_EQ(decode_manifest(json)->optimizer_steps, 12);
}

TEST(CheckpointDirectoryName, is_a_step_and_nothing_else) {
  EXPECT_EQ(checkpoint_directory_name(123), "step-000000123");
  EXPECT_EQ(parse_checkpoint_directory_name("step-000000123").value(), 123);
  EXPECT_EQ(parse_checkpoint_directory_name(checkpoint_directory_name(12345678901)).value(), 12345678901);
  for (const char* name : {"step-000000123.tmp", "step-123", "step-00000012x", "stop-000000123", "step-",
                           "step-9999999999999999", ""}) {
    EXPECT_FALSE(parse_checkpoint_directory_name(name).ok()) << name;
  }
}

}  // namespace
}  // namespace evenkeel::contract
