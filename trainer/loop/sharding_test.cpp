// Ranks that own files, ranks that each see everything, records that cannot be read: with real readers, kernels and
// rings.
#include "trainer/loop/sharding.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/hash.h"
#include "trainer/loop/training_fixture.h"

namespace evenkeel::trainer {
namespace {

using namespace testing;
using contract::ShardingPolicy;

// CIFAR files of so many records; the pixels of a record are its number, in some order.
std::int64_t put_cifar(base::FakeFiles& files, const std::vector<int>& sizes) {
  std::int64_t id = 0;
  for (std::size_t file = 0; file < sizes.size(); ++file) {
    std::string content;
    for (int i = 0; i < sizes[file]; ++i, ++id) {
      content += static_cast<char>(id % 10);
      for (int byte = 0; byte < 3072; ++byte) content += static_cast<char>((id * 37 + byte * (id % 5 + 1)) % 251);
    }
    files.put("/data/data_batch_" + std::to_string(file + 1) + ".bin", content);
  }
  files.put("/data/test_batch.bin", std::string(3073, '\0'));
  return id;
}

contract::TrainingJobSpec cifar_job(int ranks, std::int64_t batch, ShardingPolicy policy) {
  contract::TrainingJobSpec spec = job_over("/data", ranks, batch);
  spec.dataset.format = "cifar10";
  spec.dataset.sharding = policy;
  spec.model.layers = {layer("flatten"), layer("dense", 10)};
  spec.training.optimizer.learning_rate = 0.01;
  spec.training.epochs = 2;
  return spec;
}

// Every epoch must be all ids, `times` each.
void expect_all_ids(const std::vector<contract::Commit>& commits, std::int64_t samples, std::int64_t epochs,
                    std::uint64_t times = 1) {
  std::uint64_t once = 0, read = 0;
  for (std::int64_t id = 0; id < samples; ++id) once += base::mix64(static_cast<std::uint64_t>(id));
  std::int64_t count = 0;
  for (const contract::Commit& commit : commits) {
    read += commit.reduced_ids_hash;
    count += commit.reduced_count;
  }
  EXPECT_EQ(count, samples * epochs * static_cast<std::int64_t>(times));
  EXPECT_EQ(read, once * times * static_cast<std::uint64_t>(epochs));
}

TEST(Sharding, auto_takes_records_and_whole_files_are_taken_where_there_are_files) {
  base::FakeFiles files;
  put_cifar(files, {4, 5});
  const auto policy_of = [&](ShardingPolicy asked) {
    const auto pair = open_dataset(files, cifar_job(1, 4, asked).dataset, 10);
    EXPECT_TRUE(pair.ok());
    contract::DatasetSpec spec;
    spec.sharding = asked;
    return choose_sharding(spec, *pair->train).value();
  };
  EXPECT_EQ(policy_of(ShardingPolicy::kAuto).policy, ShardingPolicy::kRecord);
  EXPECT_EQ(policy_of(ShardingPolicy::kRecord).policy, ShardingPolicy::kRecord);
  EXPECT_EQ(policy_of(ShardingPolicy::kOff).policy, ShardingPolicy::kOff);
  const Sharding file = policy_of(ShardingPolicy::kFile);
  EXPECT_EQ(file.policy, ShardingPolicy::kFile);
  EXPECT_EQ(file.file_samples, (std::vector<std::int64_t>{4, 5}));
}

TEST(Sharding, a_share_is_the_first_pieces_of_the_rank_and_not_what_it_only_owns) {
  contract::StepPlan plan;
  plan.cuts = {10, 14, 14, 17};
  EXPECT_EQ(share_of(plan, 2), (PositionRanges{{14, 17}}));
  plan.pieces = {{0, 40, 43}, {0, 50, 60}, {1, 70, 90}, {2, 0, 3}};
  EXPECT_EQ(share_of(plan, 0), (PositionRanges{{40, 43}, {50, 51}}));
  EXPECT_TRUE(share_of(plan, 1).empty());
  EXPECT_EQ(share_of(plan, 2), (PositionRanges{{0, 3}}));
}

TEST(Sharding, ranks_that_own_files_read_every_sample_once_an_epoch) {
  base::FakeFiles files;
  const std::int64_t samples = put_cifar(files, {17, 3, 30, 9});
  for (const int ranks : {1, 2, 3, 4}) {
    const auto results = train_group(files, cifar_job(ranks, 8, ShardingPolicy::kFile));
    expect_ok(results);
    expect_all_ids(results[0].commits, samples, 2);
    for (const RankResult& result : results) EXPECT_EQ(result.hash, results[0].hash);
  }
}

// The samples of a step depend on who owns what, so another number of ranks is another run; the same is the same.
TEST(Sharding, a_resumed_run_of_ranks_that_own_files_has_the_bits_of_an_undisturbed_one) {
  for (const ShardingPolicy policy : {ShardingPolicy::kFile, ShardingPolicy::kOff}) {
    for (const std::size_t cut : {1, 5, 8, 11}) {
      base::FakeFiles files;
      put_cifar(files, {17, 3, 30, 9});
      const contract::TrainingJobSpec spec = cifar_job(3, 8, policy);
      const auto whole = train_group(files, spec);
      expect_ok(whole);
      GroupOptions options;
      options.checkpoint_root = "/checkpoints";
      options.max_steps = cut;
      expect_ok(train_group(files, spec, options));
      options.max_steps = 1u << 30;
      const auto resumed = train_group(files, spec, options);
      expect_ok(resumed);
      EXPECT_EQ(resumed[0].hash, whole[0].hash) << "after step " << cut;
      EXPECT_EQ(resumed[0].position.step, whole[0].position.step);
    }
  }
}

TEST(Sharding, a_run_goes_on_with_other_ranks_and_still_reads_every_sample_once) {
  base::FakeFiles files;
  const std::int64_t samples = put_cifar(files, {17, 3, 30, 9});
  GroupOptions options;
  options.checkpoint_root = "/checkpoints";
  options.max_steps = 3;
  std::vector<contract::Commit> commits;
  for (const int ranks : {4, 1, 3, 2}) {
    const auto results = train_group(files, cifar_job(ranks, 8, ShardingPolicy::kFile), options);
    expect_ok(results);
    commits.insert(commits.end(), results[0].commits.begin(), results[0].commits.end());
    if (ranks == 3) options.max_steps = 1u << 30;
  }
  expect_all_ids(commits, samples, 2);
}

TEST(Sharding, with_off_every_rank_reads_all_and_the_rate_follows_its_longer_epoch) {
  base::FakeFiles files;
  const std::int64_t samples = put_cifar(files, {20});
  contract::TrainingJobSpec spec = cifar_job(4, 4, ShardingPolicy::kOff);
  spec.training.epochs = 1;
  spec.training.schedule.kind = contract::Schedule::kCosine;
  const auto results = train_group(files, spec);
  expect_ok(results);
  ASSERT_EQ(results[0].commits.size(), 20u);
  expect_all_ids(results[0].commits, samples, 1, 4);
  std::uint64_t once = 0;
  for (std::uint64_t id = 0; id < 20; ++id) once += base::mix64(id);
  for (const RankResult& result : results) {
    std::uint64_t own = 0;
    for (const contract::Commit& commit : result.commits) own += commit.ids_hash;
    EXPECT_EQ(own, once);
  }
  EXPECT_GT(results[0].commits[10].learning_rate, 0.004) << "half way after half of the steps";
  EXPECT_LT(results[0].commits[19].learning_rate, 0.001);
}

// ---- records that cannot be read

contract::TrainingJobSpec skipping(contract::TrainingJobSpec spec, std::int64_t most) {
  spec.dataset.bad_record_action = contract::BadRecordAction::kSkip;
  spec.dataset.max_skipped = most;
  return spec;
}

TEST(Poison, a_skipped_record_has_no_weight_and_all_ranks_know_of_it) {
  base::FakeFiles files;
  put_bias_set(files, "/data", {0, 0, 0, 1, 1, 9});  // label 9 of 2 classes
  put_bias_set(files, "/without", {0, 0, 0, 1, 1});
  const auto without = train_group(files, bias_job("/without", 1, 5, 2));
  for (const int ranks : {1, 2, 3}) {
    const auto results = train_group(files, skipping(bias_job("/data", ranks, 6, 2), 1));
    expect_ok(results);
    EXPECT_LE(max_relative_difference(results[0].weights, without[0].weights), 1e-6);
    std::size_t told = 0;
    for (const RankResult& result : results) {
      told += result.commits[0].skipped_ids.size();
      EXPECT_EQ(result.position.poison, (std::vector<std::int64_t>{5}));
    }
    EXPECT_EQ(told, 1u);
    expect_all_ids(results[0].commits, 6, 1);
  }
  EXPECT_EQ(train_group(files, bias_job("/data", 1, 6, 2))[0].status.error().code, base::ErrorCode::kCorruptData);
}

TEST(Poison, what_a_skipped_record_shows_does_not_reach_the_statistics_of_its_group) {
  std::vector<std::vector<float>> weights;
  for (const int byte : {0, 255}) {
    base::FakeFiles files;
    put_cifar(files, {24});
    std::string content = *files.read("/data/data_batch_1.bin", 1 << 20);
    std::fill_n(content.begin() + 7 * 3073, 3073, static_cast<char>(byte));
    content[7 * 3073] = 11;  // no class
    files.put("/data/data_batch_1.bin", content);
    for (const int ranks : {1, 2}) {
      contract::TrainingJobSpec spec = skipping(cifar_job(ranks, 8, ShardingPolicy::kRecord), 1);
      spec.model.layers = {layer("batchNorm"), layer("flatten"), layer("dense", 10)};
      spec.training.batch_norm.group = 4;
      const auto results = train_group(files, spec);
      expect_ok(results);
      weights.push_back(results[0].weights);
    }
  }
  EXPECT_EQ(weights[0], weights[2]);
  EXPECT_EQ(weights[1], weights[3]);
  EXPECT_LE(max_relative_difference(weights[0], weights[1]), 1e-5);
}

TEST(Poison, more_than_are_allowed_end_the_run_wherever_they_were_met) {
  base::FakeFiles files;
  put_bias_set(files, "/data", {0, 9, 0, 1, 9, 0, 1, 1});
  const auto results = train_group(files, skipping(bias_job("/data", 2, 8, 2), 1));
  bool told = false;
  for (const RankResult& result : results) {
    ASSERT_FALSE(result.status.ok());
    told = told || (result.status.error().code == base::ErrorCode::kCorruptData &&
                    result.status.error().message.find("maxSkipped") != std::string::npos);
  }
  EXPECT_TRUE(told);
}

TEST(Poison, it_comes_back_with_the_checkpoint) {
  base::FakeFiles files;
  put_bias_set(files, "/data", {0, 9, 0, 1, 1, 0, 1, 1});
  contract::TrainingJobSpec spec = skipping(bias_job("/data", 2, 4, 2), 1);
  spec.training.epochs = 2;
  GroupOptions options;
  options.checkpoint_root = "/checkpoints";
  options.max_steps = 2;
  expect_ok(train_group(files, spec, options));
  const auto found = find_checkpoint(files, "/checkpoints", "uid");
  ASSERT_TRUE(found.ok() && found->newest);
  EXPECT_EQ(found->newest->manifest.poison, (std::vector<std::int64_t>{1}));
  options.max_steps = 1u << 30;
  const auto results = train_group(files, spec, options);
  expect_ok(results);
  EXPECT_EQ(results[1].position.poison, (std::vector<std::int64_t>{1}));
}

// ---- mistakes on purpose

TEST(Mutants, a_repeated_record_is_in_the_hashes_and_a_dropped_gradient_in_the_weights) {
  base::FakeFiles files;
  const std::int64_t samples = put_cifar(files, {24});
  const contract::TrainingJobSpec spec = cifar_job(1, 8, ShardingPolicy::kRecord);
  GroupOptions options;
  options.replica.injection = *Injection::parse("repeat-record", 0, 1);
  const auto repeated = train_group(files, spec, options);
  expect_ok(repeated);
  std::uint64_t once = 0, read = 0;
  for (std::int64_t id = 0; id < samples; ++id) once += base::mix64(static_cast<std::uint64_t>(id));
  for (std::size_t step = 0; step < 3; ++step) read += repeated[0].commits[step].reduced_ids_hash;
  EXPECT_NE(read, once);
  read = 0;
  for (std::size_t step = 3; step < 6; ++step) read += repeated[0].commits[step].reduced_ids_hash;
  EXPECT_EQ(read, once) << "once is enough";
  options.replica.injection = *Injection::parse("drop-gradient@0", 0, 1);
  const auto dropped = train_group(files, spec, options);
  expect_ok(dropped);
  EXPECT_EQ(dropped[0].commits[2].gradient_norm, 0);
}

}  // namespace
}  // namespace evenkeel::trainer
