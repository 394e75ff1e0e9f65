#include "trainer/coordinator/sample_oracle.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/hash.h"

namespace evenkeel::trainer {
namespace {

std::uint64_t hash_of(const std::vector<std::uint64_t>& ids) {
  std::uint64_t sum = 0;
  for (const std::uint64_t id : ids) sum += base::mix64(id);
  return sum;
}

TEST(SampleOracle, every_sample_once_in_any_order_is_proved) {
  SampleOracle oracle(5);
  oracle.add(3, hash_of({4, 0, 2}));
  oracle.add(2, hash_of({1, 3}));
  EXPECT_FALSE(oracle.close(0));
  EXPECT_EQ(oracle.epochs_proved(), 1);
  oracle.add(5, hash_of({3, 1, 2, 0, 4}));
  EXPECT_FALSE(oracle.close(1));
  EXPECT_EQ(oracle.epochs_proved(), 2);
}

TEST(SampleOracle, a_reader_that_repeats_one_record_is_caught) {
  SampleOracle oracle(5);
  oracle.add(3, hash_of({4, 0, 2}));
  oracle.add(2, hash_of({1, 2}));
  ASSERT_TRUE(oracle.close(7));
  oracle.add(4, hash_of({0, 1, 2, 3}));
  EXPECT_EQ(oracle.close(8), "epoch 8: 4 samples were committed, the training split has 5");
  EXPECT_EQ(oracle.epochs_proved(), 0);
}

TEST(SampleOracle, an_epoch_that_was_not_seen_whole_is_not_judged_and_the_next_one_is) {
  SampleOracle oracle(4);
  oracle.begin_at(2);
  oracle.add(2, hash_of({0, 1}));
  EXPECT_FALSE(oracle.close(0));
  oracle.add(2, hash_of({0, 1}));
  oracle.add(2, std::nullopt);
  EXPECT_FALSE(oracle.close(1));
  EXPECT_EQ(oracle.epochs_unknown(), 2);
  oracle.add(4, hash_of({0, 1, 2, 2}));
  EXPECT_TRUE(oracle.close(2));
}

TEST(SampleOracle, where_every_rank_sees_everything_each_sample_comes_as_often_as_there_are_ranks) {
  SampleOracle oracle(3);
  oracle.add(6, hash_of({0, 1, 2, 2, 1, 0}));
  EXPECT_FALSE(oracle.close(0, 2));
  oracle.add(6, hash_of({0, 1, 2, 2, 1, 1}));
  EXPECT_NE(oracle.close(1, 2)->find("2 times each"), std::string::npos);
  oracle.add(3, hash_of({0, 1, 2}));
  EXPECT_EQ(oracle.close(2, 2), "epoch 2: 3 samples were committed, the training split has 3, 2 times");
  EXPECT_EQ(oracle.epochs_proved(), 1);
}

}  // namespace
}  // namespace evenkeel::trainer
