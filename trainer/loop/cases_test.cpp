// Faults that users of comparable systems reported, each with the value that is right. The number behind TR
// is the case's.
#include "trainer/loop/training_fixture.h"
#include "trainer/optim/learning_rate.h"

namespace evenkeel::trainer {
namespace {

using namespace testing;

std::vector<std::int64_t> shares_of(const contract::StepPlan& plan) {
  std::vector<std::int64_t> shares;
  for (std::size_t r = 0; r + 1 < plan.cuts.size(); ++r) shares.push_back(plan.cuts[r + 1] - plan.cuts[r]);
  return shares;
}

std::vector<RankResult> trained(base::FakeFiles& files, const contract::TrainingJobSpec& spec,
                                const GroupOptions& options = {}) {
  auto results = train_group(files, spec, options);
  expect_ok(results);
  return results;
}

TEST(Cases, TR_02_an_uneven_last_batch_on_one_and_two_ranks) {
  base::FakeFiles files;
  put_row_set(files, "/data", 101, 3);
  const auto one = trained(files, row_job("/data", 1, 10, 3));
  const auto two = trained(files, row_job("/data", 2, 10, 3));
  EXPECT_EQ(two[0].commits.size(), 11u);
  EXPECT_EQ(two[0].position.consumed, (std::vector<std::int64_t>{51, 50}));
  EXPECT_EQ(two[0].position.samples(), 101);
  EXPECT_LE(max_relative_difference(one[0].weights, two[0].weights), 1e-5);
}

TEST(Cases, TR_03_the_epoch_ends_with_a_short_step_and_the_next_begins_with_a_full_one) {
  contract::TrainingJobSpec spec = row_job("/data", 3, 64, 3);
  spec.training.epochs = 2;
  const auto plans = plans_of(spec, 1000);
  ASSERT_EQ(plans.size(), 32u);
  EXPECT_EQ(plans[15].planned(), 40);
  EXPECT_EQ(shares_of(plans[15]), (std::vector<std::int64_t>{14, 13, 13}));
  EXPECT_EQ(plans[16].planned(), 64);
  EXPECT_EQ(plans[16].epoch, 1);
}

TEST(Cases, TR_04_the_first_to_finish_ends_nobody) {
  base::FakeFiles files;
  put_row_set(files, "/data", 103, 3);
  const contract::TrainingJobSpec spec = row_job("/data", 4, 4, 3);
  const auto plans = plans_of(spec, 103);
  ASSERT_EQ(plans.size(), 26u);
  EXPECT_EQ(shares_of(plans.back()), (std::vector<std::int64_t>{1, 1, 0, 1}));
  const auto results = trained(files, spec);
  EXPECT_EQ(results[3].position.consumed, (std::vector<std::int64_t>{26, 26, 25, 26}));
}

TEST(Cases, TR_12_every_epoch_has_another_order_and_the_same_again_in_the_next_run) {
  base::FakeFiles files;
  put_row_set(files, "/data", 24, 3);
  const auto hashes = [&](int ranks, bool shuffle) {
    contract::TrainingJobSpec spec = row_job("/data", ranks, 8, 3);
    spec.training.epochs = 3;
    spec.dataset.shuffle = shuffle;
    std::vector<std::uint64_t> sums;
    const auto results = trained(files, spec);
    for (std::size_t step = 0; step < results[0].commits.size(); ++step) {
      std::uint64_t sum = 0;
      for (const RankResult& rank : results) sum += rank.commits[step].ids_hash;
      sums.push_back(sum);
    }
    return sums;
  };
  const auto first = hashes(1, true);
  ASSERT_EQ(first.size(), 9u);
  EXPECT_NE(std::vector(first.begin(), first.begin() + 3), std::vector(first.begin() + 3, first.begin() + 6));
  EXPECT_NE(std::vector(first.begin() + 3, first.begin() + 6), std::vector(first.begin() + 6, first.end()));
  EXPECT_EQ(hashes(1, true), first);
  EXPECT_EQ(hashes(4, true), first);
  const auto plain = hashes(4, false);
  EXPECT_EQ(std::vector(plain.begin(), plain.begin() + 3), std::vector(plain.begin() + 3, plain.begin() + 6));
}

TEST(Cases, TR_18_empty_shares_give_zeros_and_never_nothing_by_nothing) {
  base::FakeFiles files;
  put_row_set(files, "/data", 9, 3);
  const auto one = trained(files, row_job("/data", 1, 4, 3));
  const auto four = trained(files, row_job("/data", 4, 4, 3));
  ASSERT_EQ(four[0].commits.size(), 3u);
  EXPECT_EQ(four[0].commits[2].reduced_count, 1);
  EXPECT_TRUE(std::isfinite(four[0].commits[2].loss_sum));
  EXPECT_LE(max_relative_difference(one[0].weights, four[0].weights), 1e-5);
}

TEST(Cases, TR_19_the_learning_rate_follows_the_ranks_after_a_warm_up) {
  contract::TrainingSpec training;
  training.epochs = 10;
  training.batch_per_replica = 64;
  training.optimizer.learning_rate = 0.1;
  training.schedule.warmup_epochs = 5;
  const auto rate = [&](std::int64_t step) {
    RatePosition position;
    position.samples_done = step * 256;
    position.step_samples = 256;
    position.samples_planned = 10 * 5120;
    position.train_samples = 5120;
    position.global_batch = position.global_batch_at_creation = 256;
    return learning_rate(training, position).value();
  };
  training.learning_rate_scaling = contract::LearningRateScaling::kLinear;
  EXPECT_NEAR(rate(0), 0.103, 1e-12);
  EXPECT_NEAR(rate(49), 0.25, 1e-12);
  EXPECT_NEAR(rate(99), 0.4, 1e-12);
  EXPECT_NEAR(rate(150), 0.4, 1e-12);
  training.learning_rate_scaling = contract::LearningRateScaling::kNone;
  EXPECT_NEAR(rate(0), 0.001, 1e-12);
  EXPECT_NEAR(rate(49), 0.05, 1e-12);
  EXPECT_NEAR(rate(99), 0.1, 1e-12);
}

TEST(Cases, TR_45_a_resume_exactly_at_the_end_of_an_epoch) {
  base::FakeFiles files;
  put_row_set(files, "/data", 64, 3);
  contract::TrainingJobSpec spec = row_job("/data", 2, 16, 3);
  spec.training.epochs = 2;
  const auto whole = trained(files, spec);
  GroupOptions first;
  first.max_steps = 4;
  first.checkpoint_root = "/checkpoints";
  (void)trained(files, spec, first);
  GroupOptions rest;
  rest.checkpoint_root = "/checkpoints";
  const auto resumed = trained(files, spec, rest);
  ASSERT_EQ(resumed[0].commits.size(), 4u);
  EXPECT_EQ(resumed[0].commits[0].step, 5);
  EXPECT_EQ(resumed[0].position.step, 8);
  EXPECT_EQ(resumed[0].position.samples(), 128);
  EXPECT_EQ(resumed[0].hash, whole[0].hash);
}

}  // namespace
}  // namespace evenkeel::trainer
