// Models with convolutions and batch normalisation over several ranks: Ghost statistics make the result that
// of one rank, Sync that of the whole batch; micro-batches change nothing; kill and resume changes no bit.
#include "trainer/loop/training_fixture.h"

namespace evenkeel::trainer {
namespace {

using testing::expect_ok;
using testing::GroupOptions;
using testing::job_over;
using testing::max_relative_difference;
using testing::RankResult;
using testing::train_group;

// n images of 6x6 with some structure, 4 classes.
void put_images(base::FakeFiles& files, const std::string& folder, std::uint32_t n) {
  std::string pixels, labels;
  for (std::uint32_t i = 0; i < n; ++i) {
    labels += static_cast<char>(i % 4);
    for (std::uint32_t p = 0; p < 36; ++p)
      pixels += static_cast<char>((p / 6 % (1 + i % 4) == 0 ? 150 : 20) + (i * 37 + p * 11) % 90);
  }
  for (const char* split : {"train", "t10k"}) {
    files.put(folder + "/" + split + "-images-idx3-ubyte",
              testing::big_endian(0x803) + testing::big_endian(n) + testing::big_endian(6) +
                  testing::big_endian(6) + pixels);
    files.put(folder + "/" + split + "-labels-idx1-ubyte",
              testing::big_endian(0x801) + testing::big_endian(n) + labels);
  }
}

contract::LayerSpec conv(int filters, const std::string& name, int stride = 1) {
  contract::LayerSpec spec = testing::layer("conv2d", 0, false);
  spec.filters = filters;
  spec.kernel_size = {3};
  spec.pads = {1};
  spec.strides = {stride};
  spec.name = name;
  return spec;
}

contract::LayerSpec named(contract::LayerSpec spec, const std::string& name,
                          std::vector<std::string> inputs = {}) {
  spec.name = name;
  spec.inputs = std::move(inputs);
  return spec;
}

// A residual block, dropout and a classifier: every kind of operator that a rank's share could disturb.
contract::TrainingJobSpec image_job(int ranks, std::int64_t global_batch) {
  contract::TrainingJobSpec spec = job_over("/data", ranks, global_batch);
  contract::LayerSpec dropout = testing::layer("dropout");
  dropout.rate = 0.2;
  spec.model.layers = {conv(6, "c1"),
                       named(testing::layer("batchNorm", 0, true, "relu"), "n1"),
                       conv(6, "c2"),
                       named(testing::layer("batchNorm"), "n2"),
                       named(testing::layer("add", 0, true, "relu"), "sum", {"n2", "n1"}),
                       dropout,
                       testing::layer("globalAvgPool"),
                       testing::layer("dense", 4)};
  spec.training.batch_norm.group = 4;
  spec.training.optimizer.learning_rate = 0.05;
  return spec;
}

std::vector<float> trained(base::FakeFiles& files, const contract::TrainingJobSpec& spec,
                           const GroupOptions& options = {}) {
  const std::vector<RankResult> results = train_group(files, spec, options);
  for (const RankResult& result : results) {
    EXPECT_TRUE(result.status.ok()) << result.status.error().message;
    EXPECT_EQ(result.hash, results[0].hash);
  }
  return results[0].weights;
}

TEST(Images, ghost_statistics_give_the_weights_of_one_rank_for_any_number_of_ranks) {
  base::FakeFiles files;
  put_images(files, "/data", 54);  // 4 steps: 16, 16, 16 and 6 = a group and a half
  const std::vector<float> one = trained(files, image_job(1, 16));
  for (const int ranks : {2, 3, 4}) {
    const std::vector<float> many = trained(files, image_job(ranks, 16));
    EXPECT_LE(max_relative_difference(one, many), 1e-5) << ranks;
  }
}

TEST(Images, reproducible_gives_the_same_bits_for_any_number_of_ranks) {
  base::FakeFiles files;
  put_images(files, "/data", 54);
  contract::TrainingJobSpec spec = image_job(1, 16);
  spec.training.reproducible = true;
  const auto one = train_group(files, spec, {});
  ASSERT_TRUE(one[0].status.ok()) << one[0].status.error().message;
  for (const int ranks : {2, 3, 4}) {
    contract::TrainingJobSpec many = image_job(ranks, 16);
    many.training.reproducible = true;
    EXPECT_EQ(train_group(files, many, {})[0].hash, one[0].hash) << ranks;
  }
  EXPECT_LE(max_relative_difference(trained(files, image_job(1, 16)), one[0].weights), 1e-5)
      << "and they are the right ones";
}

TEST(Images, sync_statistics_give_the_weights_of_one_rank_with_local_ones_also_with_empty_ranks) {
  base::FakeFiles files;
  put_images(files, "/data", 33);  // the last step holds one sample: two of three ranks are empty
  contract::TrainingJobSpec local = image_job(1, 16);
  local.training.batch_norm.statistics = contract::BatchNormStatistics::kLocal;
  const std::vector<float> one = trained(files, local);
  for (const int ranks : {2, 3}) {
    contract::TrainingJobSpec sync = image_job(ranks, 16);
    sync.training.batch_norm.statistics = contract::BatchNormStatistics::kSync;
    EXPECT_LE(max_relative_difference(one, trained(files, sync)), 2e-5) << ranks;
  }
}

TEST(Images, local_statistics_of_another_split_are_another_model) {
  base::FakeFiles files;
  put_images(files, "/data", 32);
  contract::TrainingJobSpec one = image_job(1, 16), two = image_job(2, 16);
  one.training.batch_norm.statistics = two.training.batch_norm.statistics =
      contract::BatchNormStatistics::kLocal;
  EXPECT_GT(max_relative_difference(trained(files, one), trained(files, two)), 1e-3);
}

// 39 samples in steps of 32 and 7, computed whole, by four ranks, and in micro-batches of 8.
TEST(Images, accumulation_is_the_big_batch_TR_16) {
  base::FakeFiles files;
  put_images(files, "/data", 39);
  const std::vector<float> whole = trained(files, image_job(1, 32));
  EXPECT_LE(max_relative_difference(whole, trained(files, image_job(4, 32))), 1e-5);
  GroupOptions micro;
  micro.replica.micro_batch = 8;
  EXPECT_LE(max_relative_difference(whole, trained(files, image_job(1, 32), micro)), 1e-5);
}

TEST(Images, a_replica_that_does_not_fit_computes_in_micro_batches_and_says_when_not_even_one_group_fits) {
  base::FakeFiles files;
  put_images(files, "/data", 64);
  const auto whole = Replica::make(files, image_job(1, 64), {});
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ((*whole)->micro_batch(), 64);
  ReplicaOptions options;
  options.memory_limit_source = "test";
  options.memory_limit_bytes = (*whole)->engine().plan().total_bytes() / 2;
  const auto smaller = Replica::make(files, image_job(1, 64), options);
  ASSERT_TRUE(smaller.ok()) << smaller.error().message;
  EXPECT_LT((*smaller)->micro_batch(), 64);
  EXPECT_EQ((*smaller)->micro_batch() % 4, 0);
  options.memory_limit_bytes = 4096;
  const auto none = Replica::make(files, image_job(1, 64), options);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("local batch of 4 "), std::string::npos) << none.error().message;
}

TEST(Images, kill_and_resume_changes_no_bit_of_weights_statistics_or_optimizer_TR_44) {
  for (const char* optimizer : {"sgd", "adam"}) {
    base::FakeFiles files;
    put_images(files, "/data", 54);
    contract::TrainingJobSpec spec = image_job(2, 16);
    spec.training.epochs = 3;
    spec.training.optimizer.type = optimizer;
    spec.training.schedule.kind = contract::Schedule::kCosine;
    spec.dataset.augment = {contract::Augmentation::kRandomCrop, contract::Augmentation::kHorizontalFlip};
    const std::vector<RankResult> whole = train_group(files, spec);
    expect_ok(whole);
    GroupOptions first;
    first.max_steps = 5;
    first.checkpoint_root = "/checkpoints";
    expect_ok(train_group(files, spec, first));
    GroupOptions rest;
    rest.checkpoint_root = "/checkpoints";
    const std::vector<RankResult> resumed = train_group(files, spec, rest);
    expect_ok(resumed);
    EXPECT_EQ(resumed[0].hash, whole[0].hash) << optimizer;
    EXPECT_EQ(resumed[0].evaluation.loss, whole[0].evaluation.loss);
  }
}

// Four 1x1 images with bytes 51, 102, 153, 204, one step over all.
std::vector<TensorView> one_step_of_batch_norm(base::FakeFiles& files, std::int64_t batch,
                                               std::unique_ptr<Replica>& replica,
                                               std::vector<float>& weights) {
  files.put("/bn/train-images-idx3-ubyte", testing::big_endian(0x803) + testing::big_endian(4) +
                                               testing::big_endian(1) + testing::big_endian(1) +
                                               "\x33\x66\x99\xcc");
  files.put("/bn/train-labels-idx1-ubyte",
            testing::big_endian(0x801) + testing::big_endian(4) + std::string("\0\1\0\1", 4));
  contract::TrainingJobSpec spec = job_over("/bn", 1, batch);
  spec.dataset.eval_split = "";
  spec.model.layers = {testing::layer("batchNorm"), testing::layer("flatten"), testing::layer("dense", 2)};
  spec.training.batch_norm.statistics = contract::BatchNormStatistics::kLocal;
  GroupOptions options;
  options.max_steps = 1;
  const auto results = train_group(files, spec, options);
  expect_ok(results);
  weights = results[0].weights;
  replica = std::move(*Replica::make(files, spec, {}));
  std::ranges::copy(weights, replica->engine().parameter_arena().begin());
  return replica->weights();
}

float value_of(const std::vector<TensorView>& views, const std::string& name) {
  for (const TensorView& view : views) {
    if (view.name == name) return view.values[0];
  }
  ADD_FAILURE() << name;
  return 0;
}

TEST(Images, running_statistics_follow_the_convention_TR_48) {
  base::FakeFiles files;
  std::unique_ptr<Replica> replica;
  std::vector<float> weights;
  const auto views = one_step_of_batch_norm(files, 4, replica, weights);
  EXPECT_NEAR(value_of(views, "batchNorm_1.running_mean"), 0.05, 1e-6);
  EXPECT_NEAR(value_of(views, "batchNorm_1.running_var"), 0.9066667, 1e-6);
}

TEST(Images, a_single_value_leaves_the_running_variance_alone_TR_49) {
  base::FakeFiles files;
  std::unique_ptr<Replica> replica;
  std::vector<float> weights;
  const auto views = one_step_of_batch_norm(files, 1, replica, weights);
  EXPECT_EQ(value_of(views, "batchNorm_1.running_var"), 1.0f);
  for (const float weight : weights) EXPECT_TRUE(std::isfinite(weight));
}

TEST(Images, fewer_groups_than_ranks_are_refused_with_the_numbers) {
  base::FakeFiles files;
  put_images(files, "/data", 32);
  contract::TrainingJobSpec spec = image_job(4, 8);
  const auto replica = Replica::make(files, spec, {});
  ASSERT_FALSE(replica.ok());
  EXPECT_NE(replica.error().message.find("2 groups of 4 samples for 4 ranks"), std::string::npos)
      << replica.error().message;
}

// Three samples where four are configured, split 2 + 1: each normalisation divides by another number.
TEST(Images, loss_normalisations_divide_by_samples_by_ranks_or_by_the_configured_batch) {
  using contract::LossNormalization;
  base::FakeFiles files;
  testing::put_bias_set(files, "/bias", {0, 1, 1});
  const auto moved = [&](LossNormalization normalization) {
    contract::TrainingJobSpec spec = testing::bias_job("/bias", 2, 4, 2);
    spec.dataset.shuffle = false;
    spec.training.loss_normalization = normalization;
    const auto results = train_group(files, spec);
    expect_ok(results);
    std::unique_ptr<Replica> replica = std::move(*Replica::make(files, spec, {}));
    std::ranges::copy(results[0].weights, replica->engine().parameter_arena().begin());
    return value_of(replica->weights(), "dense_1.bias");
  };
  // Gradients of bias 0: -0.5 for the label 0, +0.5 for each label 1; rank 0 holds 0 and 1, rank 1 holds 1.
  EXPECT_NEAR(moved(LossNormalization::kActualGlobal), -0.5 / 3, 1e-6);
  EXPECT_NEAR(moved(LossNormalization::kConstantGlobal), -0.5 / 4, 1e-6);
  EXPECT_NEAR(moved(LossNormalization::kPerReplicaMean), -(0.0 + 0.5) / 2, 1e-6);
}

}  // namespace
}  // namespace evenkeel::trainer
