#include "trainer/strategy/gradient_reduction.h"

#include <gtest/gtest.h>

#include <barrier>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>

namespace evenkeel::trainer {
namespace {

using base::ErrorCode;
using base::Status;

// Ranks as threads of one process that add in memory, in rank order.
class MemoryGroup {
 public:
  explicit MemoryGroup(int size) : size_(size), barrier_(size), parts_(static_cast<std::size_t>(size)) {}

  class Member : public Collective {
   public:
    Member(MemoryGroup& group, int rank) : group_(group), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return group_.size_; }
    Status all_reduce(std::span<float> v, std::uint32_t, std::span<float> tail) override {
      return sum(v, tail);
    }
    Status all_reduce(std::span<double> v, std::uint32_t, std::span<double> tail) override {
      return sum(v, tail);
    }
    Status all_reduce(std::span<std::int64_t> v, std::uint32_t, std::span<std::int64_t> tail) override {
      return sum(v, tail);
    }
    Status broadcast(std::span<float>, int) override { return {}; }
    Status broadcast(std::span<double>, int) override { return {}; }
    Status barrier() override { return {}; }
    void abort(const std::string&) override {}
    CollectiveCount count(contract::CollectiveOp) const override { return calls_; }

   private:
    template <class T>
    Status sum(std::span<T> values, std::span<T> tail) {
      std::vector<double>& mine = group_.parts_[static_cast<std::size_t>(rank_)];
      mine.assign(values.begin(), values.end());
      mine.insert(mine.end(), tail.begin(), tail.end());
      group_.barrier_.arrive_and_wait();
      for (std::size_t i = 0; i < mine.size(); ++i) {
        T sum = 0;
        for (const auto& part : group_.parts_) sum += static_cast<T>(part[i]);
        (i < values.size() ? values[i] : tail[i - values.size()]) = sum;
      }
      ++calls_.calls;
      group_.barrier_.arrive_and_wait();
      return {};
    }
    MemoryGroup& group_;
    int rank_;
    CollectiveCount calls_;
  };

  void run(const std::function<void(Member&)>& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank) {
      threads.emplace_back([this, rank, &body] {
        Member member(*this, rank);
        body(member);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  int size_;
  std::barrier<> barrier_;
  std::vector<std::vector<double>> parts_;
};

const std::vector<Bucket> kBuckets{{0, 4, 0}, {4, 2, 1}};

TEST(GradientReduction, buckets_are_summed_and_the_count_rides_with_the_last_one) {
  MemoryGroup group(3);
  group.run([](MemoryGroup::Member& member) {
    std::vector<float> gradients(6, static_cast<float>(member.rank() + 1));
    GradientReduction reduction(member, kBuckets, gradients);
    reduction.on_bucket_ready(0);
    reduction.on_bucket_ready(1);
    const auto sums = reduction.reduce(7, {0.1 * (member.rank() + 1), member.rank() * 5, member.rank()});
    ASSERT_TRUE(sums.ok()) << sums.error().message;
    EXPECT_EQ(gradients, std::vector<float>(6, 6.0f));
    EXPECT_EQ(sums->count, 15);
    EXPECT_EQ(sums->correct, 3);
    EXPECT_EQ(sums->ranks_with_data, 2) << "rank 0 has no sample and still takes part";
    EXPECT_EQ(sums->ranks_with_bad_loss, 0);
    EXPECT_NEAR(sums->loss, 0.6, 1e-6);
    EXPECT_EQ(member.count(contract::CollectiveOp::kAllReduce).calls, 2u)
        << "no collective beside the buckets";
  });
}

TEST(GradientReduction, counts_are_exact_up_to_two_to_the_24_and_refused_beyond) {
  MemoryGroup group(2);
  group.run([](MemoryGroup::Member& member) {
    std::vector<float> gradients(6);
    GradientReduction reduction(member, kBuckets, gradients);
    const std::int64_t half = kMaxExactCount / 2;
    const auto reduce = [&](std::int64_t count) {
      reduction.on_bucket_ready(0);
      reduction.on_bucket_ready(1);
      return reduction.reduce(1, {0, count, 0});
    };
    auto sums = reduce(half - member.rank());
    ASSERT_TRUE(sums.ok());
    EXPECT_EQ(sums->count, kMaxExactCount - 1);
    sums = reduce(half + 2);
    ASSERT_FALSE(sums.ok());
    EXPECT_EQ(sums.error().code, ErrorCode::kUnsupported);
  });
}

TEST(GradientReduction, one_ranks_bad_loss_is_known_to_all) {
  for (const double bad :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    MemoryGroup group(3);
    group.run([bad](MemoryGroup::Member& member) {
      std::vector<float> gradients(6);
      GradientReduction reduction(member, kBuckets, gradients);
      reduction.on_bucket_ready(0);
      reduction.on_bucket_ready(1);
      const auto sums = reduction.reduce(1, {member.rank() == 1 ? bad : 1.0, 2, 0});
      ASSERT_TRUE(sums.ok());
      EXPECT_FALSE(std::isfinite(sums->loss));
      EXPECT_EQ(sums->ranks_with_bad_loss, 1);
    });
  }
}

TEST(GradientReduction, ranks_in_different_steps_are_refused) {
  MemoryGroup group(2);
  group.run([](MemoryGroup::Member& member) {
    std::vector<float> gradients(6);
    GradientReduction reduction(member, kBuckets, gradients);
    reduction.on_bucket_ready(0);
    reduction.on_bucket_ready(1);
    const auto sums = reduction.reduce(10 + member.rank(), {});
    ASSERT_FALSE(sums.ok());
    EXPECT_EQ(sums.error().code, ErrorCode::kMismatch);
  });
}

TEST(GradientReduction, evaluation_is_summed_in_double) {
  MemoryGroup group(2);
  group.run([](MemoryGroup::Member& member) {
    const auto sums =
        reduce_evaluation(member, {0.1, (std::int64_t{1} << 30) + member.rank(), std::int64_t{1} << 31, {}});
    ASSERT_TRUE(sums.ok());
    EXPECT_DOUBLE_EQ(sums->loss, 0.2);
    EXPECT_EQ(sums->correct, (std::int64_t{1} << 31) + 1);
    EXPECT_EQ(sums->samples, std::int64_t{1} << 32);
  });
}

}  // namespace
}  // namespace evenkeel::trainer
