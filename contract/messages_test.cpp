#include "contract/messages.h"

#include <gtest/gtest.h>

namespace evenkeel::contract {
namespace {

// Text and back, as on the wire.
Json over_the_wire(const Json& json) {
  return *base::parse_json(base::dump_json(json));
}

TEST(Messages, each_one_is_read_back_as_it_was_written) {
  const Fence fence{3, 2, 1};
  Join join;
  join.plan_hash = "abc";
  join.plan_parts = {{"dense_1", "11"}, {"data", "22"}};
  join.data_address = "10.0.0.1:9402";
  join.train_samples = 60000;
  join.checkpoint = {7, 1, 2, "h", {3, 4}, {"step-000000008: truncated"}};
  join.cpu_limit = 0.4;
  join.cores = 16;
  join.held = CheckpointPosition{9, 1, 4, "", {5, 6}, {}};
  EXPECT_EQ(to_json(*decode_join(over_the_wire(to_json(join)))), to_json(join));

  const Hello hello{1, "uid", 2, 3, 4, "pod", "00ff"};
  EXPECT_EQ(to_json(*decode_hello(over_the_wire(to_json(hello)))), to_json(hello));
  const Membership membership{fence, 4, {1, 4}, {"a:1", "b:2"}, StateSource::kMemory, 1, 50, 100, 4, true, true, true};
  EXPECT_EQ(to_json(*decode_membership(over_the_wire(to_json(membership)))), to_json(membership));
  const StepPlan plan{fence, 8, 1, {0, 3, 3, 5}, true, true, false, 64, 48.5};
  EXPECT_EQ(to_json(*decode_step_plan(over_the_wire(to_json(plan)))), to_json(plan));
  EXPECT_EQ(plan.planned(), 5);
  Commit commit;
  commit.fence = fence;
  commit.step = 8;
  commit.ids_hash = 0xfedcba9876543210ull;
  commit.reduced_ids_hash = 0x0123456789abcdefull;
  commit.loss_sum = 2.302585;
  commit.phases.forward = 0.25;
  EXPECT_EQ(decode_commit(over_the_wire(to_json(commit)))->ids_hash, commit.ids_hash);
  EXPECT_EQ(to_json(*decode_commit(over_the_wire(to_json(commit)))), to_json(commit));
  const Paused paused{fence, 8, commit, 8, 4};
  EXPECT_EQ(to_json(*decode_paused(over_the_wire(to_json(paused)))), to_json(paused));
  EXPECT_FALSE(decode_paused(over_the_wire(to_json(Paused{fence, 0, {}, 0, 0})))->last);
  EXPECT_EQ(decode_regroup(over_the_wire(to_json(Regroup{fence, "rank 2 was lost"})))->reason, "rank 2 was lost");
  EXPECT_EQ(decode_broken(over_the_wire(to_json(Broken{fence, "ring"})))->fence, fence);
  const Evaluated evaluated{8, 1, 1.5, 9, 10, 0.1};
  EXPECT_EQ(to_json(*decode_evaluated(over_the_wire(to_json(evaluated)))), to_json(evaluated));
  const Checkpointed checkpointed{8, "/c/step-000000008", 123, 0.5, ""};
  EXPECT_EQ(to_json(*decode_checkpointed(over_the_wire(to_json(checkpointed)))), to_json(checkpointed));
  EXPECT_EQ(decode_failure(over_the_wire(to_json(Failure{65, "bad label", 3})))->exit_code, 65);
  EXPECT_EQ(decode_abort(over_the_wire(to_json(Abort{"rank 2 lost", 2})))->culprit, 2);
  EXPECT_TRUE(decode_finish(over_the_wire(to_json(Finish{true, "done"})))->completed);
  EXPECT_EQ(decode_refused(over_the_wire(to_json(Refused{78, "another plan"})))->exit_code, 78);
  Ready ready{fence, "ph", 0.5, {}};
  EXPECT_FALSE(decode_ready(over_the_wire(to_json(ready)))->preflight);
  ready.preflight = Preflight{1e9, 1e-5, 0.1, 0.01, 64, 0.096, 0.002, 0.1, 0.12, 0.09, 2e9, 1e6, 3};
  EXPECT_EQ(to_json(*decode_ready(over_the_wire(to_json(ready)))), to_json(ready));
  EXPECT_EQ(decode_heartbeat(over_the_wire(to_json(Heartbeat{3, "forward"})))->phase, "forward");
  const Heartbeat throttled{3, "forward", 40, 31};
  EXPECT_EQ(to_json(*decode_heartbeat(over_the_wire(to_json(throttled)))), to_json(throttled));
  EXPECT_EQ(decode_challenge(over_the_wire(to_json(Challenge{"n", "p"})))->proof_hex, "p");
  EXPECT_EQ(decode_stop_request(over_the_wire(to_json(StopRequest{"SIGTERM"})))->reason, "SIGTERM");
}

TEST(Messages, what_a_rank_owns_and_cannot_read_comes_through) {
  StepPlan plan;
  plan.cuts = {0, 2, 5};
  plan.pieces = {{0, 10, 12}, {1, 40, 42}, {1, 7, 8}};
  EXPECT_EQ(decode_step_plan(over_the_wire(to_json(plan)))->pieces, plan.pieces);
  CheckpointPosition position;
  position.owned = {{3, 5, 9}};
  position.poison = {17};
  position.rate_batch = 40.5;
  EXPECT_EQ(to_json(*decode_checkpoint_position(over_the_wire(to_json(position)))), to_json(position));
  Commit commit;
  commit.work = 12.5;
  commit.skipped_ids = {4, 9};
  commit.own_gradient_square = 2;
  commit.reduced_gradient_square = 1;
  commit.no_core_seconds = 0.25;
  commit.no_core_reducing_seconds = 0.125;
  EXPECT_EQ(to_json(*decode_commit(over_the_wire(to_json(commit)))), to_json(commit));
  Json json = to_json(plan);
  for (const Json& wrong : {Json(1), Json::array({1}), Json::array({Json::array({0, 2, 1})}), Json::array({Json::array({-1, 2, 3})}),
                            Json::array({Json::array({0, 1.5, 3})})}) {
    json["pieces"] = wrong;
    const auto refused = decode_step_plan(json);
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_NE(refused.error().message.find("pieces"), std::string::npos);
  }
}

TEST(Messages, a_wrong_member_is_corrupt_data_and_named) {
  Json json = to_json(StepPlan{{1, 1, 1}, 1, 0, {0, 4}, false, false, false});
  json["cuts"] = Json::array({4, 0});
  const auto decreasing = decode_step_plan(json);
  ASSERT_FALSE(decreasing.ok());
  EXPECT_EQ(decreasing.error().code, base::ErrorCode::kCorruptData);
  EXPECT_NE(decreasing.error().message.find("cuts"), std::string::npos);
  json = to_json(Commit{});
  json["phases"] = Json::array({1, 2});
  EXPECT_FALSE(decode_commit(json).ok());
  EXPECT_FALSE(decode_hello(Json::array()).ok());
  EXPECT_FALSE(decode_membership(Json(3)).ok());
}

TEST(Messages, a_proof_depends_on_side_key_identity_and_nonce) {
  const Hello hello{1, "uid", 2, 3, 4, "pod", "00"};
  Hello other = hello;
  other.rank = 2;
  const std::string proof = handshake_proof("key", "coordinator", hello, "aa");
  EXPECT_EQ(proof.size(), 64u);
  EXPECT_NE(proof, handshake_proof("key", "worker", hello, "aa"));
  EXPECT_NE(proof, handshake_proof("kez", "coordinator", hello, "aa"));
  EXPECT_NE(proof, handshake_proof("key", "coordinator", other, "aa"));
  EXPECT_NE(proof, handshake_proof("key", "coordinator", hello, "ab"));
}

TEST(Messages, phases_add_up) {
  PhaseSeconds p;
  for (int i = 0; i < 9; ++i) phase(p, i) = 1;
  EXPECT_DOUBLE_EQ(p.total(), 9);
  EXPECT_DOUBLE_EQ(p.busy(), 5);
}

}  // namespace
}  // namespace evenkeel::contract
