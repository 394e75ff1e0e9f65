#include <gtest/gtest.h>

#include "contract/job/manifest_fixture.h"
#include "contract/job/validate.h"
#include "contract/labels.h"

namespace evenkeel::contract {
namespace {

TEST(Decode, a_short_manifest_becomes_a_job_with_every_default) {
  auto job = decode_job(short_manifest());
  ASSERT_TRUE(job.ok()) << job.error().message;
  const TrainingJobSpec& spec = job->spec;
  EXPECT_EQ(job->meta.name, "demo");
  EXPECT_FALSE(spec.suspend);
  EXPECT_EQ(spec.managed_by, kDefaultManagedBy);
  EXPECT_EQ(spec.strategy.type, StrategyType::kMultiWorkerMirrored);
  EXPECT_EQ(spec.workers.replicas, 4);
  EXPECT_FALSE(spec.workers.scalable());
  EXPECT_EQ(spec.ranks(), 4);
  EXPECT_EQ(spec.global_batch(), 256);
  EXPECT_EQ(spec.dataset.train_split, "train");
  EXPECT_EQ(spec.dataset.eval_split, "test");
  EXPECT_TRUE(spec.dataset.volume.is_null());
  EXPECT_TRUE(spec.dataset.shuffle);
  EXPECT_EQ(spec.dataset.shuffle_seed, 42u);
  EXPECT_DOUBLE_EQ(spec.training.optimizer.learning_rate, 0.1);
  EXPECT_DOUBLE_EQ(spec.training.optimizer.momentum, 0.9);
  EXPECT_EQ(spec.training.evaluate_every, 1);
  EXPECT_EQ(spec.balance_mode, BalanceMode::kRebalance);
  EXPECT_EQ(spec.tune_mode, TuneMode::kAdvise);
  EXPECT_EQ(spec.restart.scope, RestartScope::kWorker);
  EXPECT_EQ(spec.restart.max_restarts, 10);
  ASSERT_EQ(spec.restart.rules.size(), 2u);
  EXPECT_EQ(spec.restart.rules[0].on_exit_codes, (std::vector<int>{64, 65, 69, 76, 78}));
  EXPECT_EQ(spec.restart.rules[0].action, RestartAction::kFailJob);
  EXPECT_TRUE(spec.restart.rules[1].on_disruption);
  EXPECT_EQ(spec.restart.rules[1].action, RestartAction::kRestartIgnoringLimit);
  EXPECT_TRUE(spec.checkpoint.path.empty());
  EXPECT_EQ(spec.metrics_port, 9400);
  EXPECT_FALSE(spec.ttl_seconds_after_finished.has_value());
}

TEST(Decode, what_the_manifest_says_is_what_the_value_holds) {
  Json object = short_manifest();
  object["metadata"] = {
      {"name", "demo"}, {"namespace", "a"}, {"uid", "u-1"}, {"resourceVersion", "7"}, {"generation", 3}};
  object["status"] = {{"phase", "Running"}};
  Json& spec = object["spec"];
  spec["suspend"] = true;
  spec["strategy"] = {{"allReduce", "Ring"}, {"bucketMiB", 0.5}};
  spec["workers"]["resources"] = {{"limits", {{"cpu", "2"}}}};
  spec["workers"]["overrides"] =
      Json::array({{{"replicas", {1, 3}}, {"resources", {{"limits", {{"cpu", "1"}}}}}}});
  spec["model"] = {
      {"layers",
       Json::array({{{"type", "flatten"}},
                    {{"type", "dense"}, {"units", 32}, {"activation", "relu"}},
                    {{"type", "dense"}, {"units", 10}, {"bias", false}, {"initializer", "glorotUniform"}}})}};
  spec["dataset"]["volume"] = {{"emptyDir", Json::object()}};
  spec["dataset"]["image"] = {{"mean", {0.5}}, {"std", {0.25}}};
  spec["dataset"]["onBadRecord"] = {{"action", "Skip"}, {"maxSkipped", 9}};
  spec["training"] = {{"steps", 100},
                      {"batchSize", {{"perReplica", 32}}},
                      {"optimizer", {{"learningRate", 1}, {"momentum", 0}, {"convention", "Keras"}}},
                      {"learningRate", {{"scaling", "Sqrt"}}},
                      {"scaling", "Strong"},
                      {"seed", 5}};
  spec["workers"]["minReplicas"] = 2;
  spec["workers"]["maxReplicas"] = 6;
  spec["tune"] = {{"mode", "Off"}, {"maxGlobalBatch", 512}};
  spec["cleanup"] = {{"podPolicy", "All"}, {"ttlSecondsAfterFinished", 60}};
  spec["checkpoint"] = {{"path", "/ckpt"}, {"everySteps", 10}};
  auto job = decode_job(object);
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(job->meta.uid, "u-1");
  EXPECT_EQ(job->meta.generation, 3);
  EXPECT_EQ(job->status_json["phase"], "Running");
  const TrainingJobSpec& value = job->spec;
  EXPECT_TRUE(value.suspend);
  EXPECT_EQ(value.strategy.all_reduce, AllReduce::kRing);
  EXPECT_EQ(value.workers.overrides.at(0).replicas, (std::vector<int>{1, 3}));
  EXPECT_EQ(value.workers.overrides.at(0).shape.resources["limits"]["cpu"], "1");
  ASSERT_EQ(value.model.layers.size(), 3u);
  EXPECT_EQ(value.model.layers[1].activation, "relu");
  EXPECT_EQ(value.model.layers[1].initializer, "heNormal");
  EXPECT_FALSE(value.model.layers[2].bias);
  EXPECT_TRUE(value.dataset.volume.contains("emptyDir"));
  EXPECT_EQ(value.dataset.stddev, std::vector<double>{0.25});
  EXPECT_EQ(value.dataset.max_skipped, 9);
  EXPECT_EQ(value.global_batch(), 128);
  EXPECT_EQ(*value.training.steps, 100);
  EXPECT_DOUBLE_EQ(value.training.optimizer.learning_rate, 1.0);
  EXPECT_EQ(value.training.optimizer.convention, OptimizerConvention::kKeras);
  EXPECT_EQ(value.training.learning_rate_scaling, LearningRateScaling::kSqrt);
  EXPECT_EQ(value.training.scaling, Scaling::kStrong);
  EXPECT_EQ(value.workers.min_replicas, 2);
  EXPECT_EQ(value.workers.most(), 6);
  EXPECT_TRUE(value.workers.scalable());
  EXPECT_EQ(value.tune_mode, TuneMode::kOff);
  EXPECT_EQ(value.max_global_batch, 512);
  EXPECT_EQ(value.pod_policy, PodCleanPolicy::kAll);
  EXPECT_EQ(*value.ttl_seconds_after_finished, 60);
  EXPECT_EQ(value.checkpoint.every_steps, 10);
  EXPECT_EQ(value.checkpoint.keep, 3);
}

TEST(Decode, a_spec_with_its_defaults_decodes_to_itself) {
  auto job = decode_job(short_manifest());
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(with_defaults(job->spec_json), job->spec_json);
  auto again = decode_spec(job->spec_json);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->workers.replicas, 4);
}

TEST(Decode, an_invalid_job_is_one_error_with_all_that_is_wrong) {
  Json object = short_manifest();
  object["spec"]["workers"]["replicas"] = 0;
  object["spec"]["training"]["epocs"] = 3;
  auto job = decode_job(object);
  ASSERT_FALSE(job.ok());
  EXPECT_EQ(job.error().code, base::ErrorCode::kInvalidInput);
  EXPECT_NE(job.error().message.find("spec.workers.replicas: 0 is too small; use 1..4096"), std::string::npos)
      << job.error().message;
  EXPECT_NE(
      job.error().message.find("spec.training.epocs: is not a field of TrainingJob; did you mean epochs?"),
      std::string::npos)
      << job.error().message;
}

TEST(Decode, any_json_is_judged_without_a_throw) {
  const Json valid = short_manifest();
  const Json strangers[] = {Json(),
                            Json(1),
                            Json(-1.5),
                            Json(true),
                            Json("x"),
                            Json::array(),
                            Json::array({Json(), 1}),
                            Json::object(),
                            Json({{"spec", Json()}}),
                            Json(1e300),
                            Json({{"", 1}})};
  for (const Json& stranger : strangers) {
    EXPECT_FALSE(decode_job(stranger).ok()) << stranger.dump();
    EXPECT_FALSE(decode_spec(stranger).ok()) << stranger.dump();
    EXPECT_FALSE(validate_job(stranger, stranger).empty());
    (void)validate_job(valid, stranger);
  }
  // Every value of a full manifest, replaced by each stranger in turn.
  const Json full = decode_job(full_manifest())->spec_json;
  Json object = valid;
  const Json leaves = full.flatten();
  for (const auto& path : leaves.items()) {
    for (Json::json_pointer at(path.key()); !at.empty(); at.pop_back()) {
      for (const Json& stranger :
           {Json(), Json(-1.5), Json("x"), Json::array({Json(), 1}), Json({{"", 1}})}) {
        object["spec"] = full;
        object["spec"][at] = stranger;
        (void)validate_job(object, valid);
      }
    }
  }
}

}  // namespace
}  // namespace evenkeel::contract
