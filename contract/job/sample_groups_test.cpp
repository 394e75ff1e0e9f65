#include "contract/job/sample_groups.h"

#include <gtest/gtest.h>

namespace evenkeel::contract {
namespace {

TrainingJobSpec job(std::int64_t global_batch, int ranks, const std::string& preset = "resnet20") {
  TrainingJobSpec spec;
  spec.model.preset = preset;
  spec.training.global_batch = global_batch;
  spec.workers.replicas = ranks;
  return spec;
}

TEST(SampleGroups, are_sixteen_or_the_batch_of_a_rank_if_that_is_smaller) {
  EXPECT_EQ(ghost_group(job(256, 4)), 16);
  EXPECT_EQ(ghost_group(job(32, 4)), 8);
  EXPECT_EQ(ghost_group(job(10, 4)), 2);
  EXPECT_EQ(ghost_group(job(2, 4)), 1);
}

TEST(SampleGroups, hold_shares_together_only_where_batch_norm_needs_it) {
  EXPECT_EQ(share_granule(job(256, 4)), 16);
  EXPECT_EQ(share_granule(job(256, 4, "mlp")), 1);
  EXPECT_EQ(share_granule(job(256, 4, "lenet")), 1);
  TrainingJobSpec local = job(256, 4);
  local.training.batch_norm.statistics = BatchNormStatistics::kLocal;
  EXPECT_EQ(share_granule(local), 1);
  TrainingJobSpec layers = job(256, 4, "");
  layers.model.layers.resize(2);
  layers.model.layers[1].type = "batchNorm";
  EXPECT_EQ(share_granule(layers), 16);
}

TEST(SampleGroups, are_the_unit_of_reproducible_sums_where_there_is_no_batch_norm) {
  TrainingJobSpec spec = job(32, 4, "mlp");
  spec.training.reproducible = true;
  EXPECT_EQ(share_granule(spec), 16);
  auto why = too_few_groups(spec);
  ASSERT_TRUE(why);
  EXPECT_NE(why->find("the unit of reproducible sums, batchNorm.group: 16 where it is absent"), std::string::npos)
      << *why;
  spec.training.batch_norm.group = 8;
  EXPECT_EQ(share_granule(spec), 8);
  EXPECT_FALSE(too_few_groups(spec));
}

TEST(SampleGroups, fewer_groups_than_ranks_are_refused_with_the_numbers) {
  TrainingJobSpec spec = job(32, 4);
  EXPECT_FALSE(too_few_groups(spec));
  spec.training.batch_norm.group = 16;
  const auto why = too_few_groups(spec);
  ASSERT_TRUE(why);
  EXPECT_NE(why->find("2 groups of 16 samples for 4 ranks"), std::string::npos) << *why;
}

}  // namespace
}  // namespace evenkeel::contract
