// R ranks compute what one rank computes: uneven splits, empty ranks, last batches, resume, numbers that are
// not finite.
#include "trainer/loop/training_step.h"

#include <gtest/gtest.h>

#include <set>

#include "trainer/loop/training_fixture.h"

namespace evenkeel::trainer {
namespace {

using namespace testing;
using base::ErrorCode;

// Rows of the kernel that the job has moved, and how often in units of a one-epoch run of one rank.
std::vector<int> times_moved(base::Files& files, contract::TrainingJobSpec spec,
                             const std::vector<float>& trained, int rows, int classes) {
  contract::TrainingJobSpec one = spec;
  one.workers.replicas = 1;
  one.training.global_batch = spec.global_batch();
  one.training.batch_per_replica.reset();
  one.training.epochs = 1;
  GroupOptions none;
  none.max_steps = 0;
  const auto initial = train_group(files, one, none);
  const auto reference = train_group(files, one);
  std::vector<int> times;
  for (int row = 0; row < rows; ++row) {
    double moved = 0, unit = 0;
    for (int k = 0; k < classes; ++k) {
      const auto i = static_cast<std::size_t>(row * classes + k);
      moved += std::abs(trained[i] - initial[0].weights[i]);
      unit += std::abs(reference[0].weights[i] - initial[0].weights[i]);
    }
    times.push_back(static_cast<int>(std::lround(moved / unit)));
  }
  return times;
}

TEST(TrainingStep, TR_01_an_uneven_last_batch_trains_every_sample_once) {
  base::FakeFiles files;
  put_row_set(files, "/data", 5, 3);
  contract::TrainingJobSpec spec = row_job("/data", 2, 4, 3);
  spec.training.global_batch.reset();
  spec.training.batch_per_replica = 2;
  const auto results = train_group(files, spec);
  expect_ok(results);
  for (const RankResult& result : results) {
    ASSERT_EQ(result.commits.size(), 2u);
    EXPECT_EQ(result.commits[1].reduced_count, 1);
  }
  EXPECT_EQ(results[0].commits[1].samples, 0);
  EXPECT_EQ(results[1].commits[1].samples, 1);
  EXPECT_EQ(times_moved(files, spec, results[0].weights, 5, 3), std::vector<int>(5, 1));
}

// A share that is larger than any before, after ranks were lost or shares moved.
TEST(TrainingStep, a_share_of_a_new_size_is_compiled_aside_before_its_step) {
  base::FakeFiles files;
  put_row_set(files, "/data", 20, 4);
  auto replica = Replica::make(files, row_job("/data", 2, 4, 4), {}).value();
  const int here = replica->engine().compiled().here;
  replica->expect_share(0, 0, 2);  // as ever
  replica->expect_share(0, 2, 9);
  replica->expect_share(0, 9, 16);
  ASSERT_EQ(replica->engine().compiled().aside, 0);
  for (const PositionRange range : {PositionRange{0, 2}, PositionRange{2, 9}, PositionRange{9, 16}}) {
    replica->prepare_share({range});
    ASSERT_TRUE(replica->read_share(0, {range}).ok());
    ASSERT_EQ(replica->micro_batches(), 1);
    ASSERT_EQ(replica->forward(0).value().count, range.samples());
  }
  EXPECT_EQ(replica->engine().compiled().aside, 1);
  EXPECT_EQ(replica->engine().compiled().here, here);
}

// Every sample moves a row of its own, so that gradients of samples are at right angles to each other and about as
// long: the square of a mean of n of them is the n-th part of one.
TEST(TrainingStep, ranks_say_how_much_their_own_mean_gradients_differ_from_that_of_all) {
  base::FakeFiles files;
  put_row_set(files, "/data", 60, 3);
  contract::TrainingJobSpec spec = row_job("/data", 3, 10, 3);
  const auto results = train_group(files, spec);
  expect_ok(results);
  for (const RankResult& result : results) {
    for (const contract::Commit& commit : result.commits) {
      if (commit.step != 5) {
        EXPECT_EQ(commit.own_gradient_square, 0) << "step " << commit.step << ": it costs a pass over the gradient";
        continue;
      }
      EXPECT_EQ(commit.reduced_gradient_square, results[0].commits[4].reduced_gradient_square);
      EXPECT_NEAR(commit.reduced_gradient_square, commit.gradient_norm * commit.gradient_norm, 1e-9);
      const double one = commit.own_gradient_square * static_cast<double>(commit.samples);
      EXPECT_NEAR(commit.reduced_gradient_square * 10 / one, 1, 0.3);
    }
  }
  spec.training.loss_normalization = contract::LossNormalization::kPerReplicaMean;
  const auto means = train_group(files, spec);
  expect_ok(means);
  EXPECT_EQ(means[0].commits[4].own_gradient_square, 0) << "a mean of means is another gradient";
}

TEST(TrainingStep, TR_10_no_sample_is_lost_where_ranks_stay_empty) {
  base::FakeFiles files;
  put_row_set(files, "/data", 9, 3);
  contract::TrainingJobSpec spec = row_job("/data", 4, 8, 3);
  const auto results = train_group(files, spec);
  expect_ok(results);
  ASSERT_EQ(results[0].commits.size(), 2u);
  std::int64_t last = 0;
  for (const RankResult& result : results) last += result.commits[1].samples;
  EXPECT_EQ(last, 1);
  EXPECT_EQ(times_moved(files, spec, results[0].weights, 9, 3), std::vector<int>(9, 1));
}

contract::TrainingJobSpec deep_job(int ranks, std::int64_t batch) {
  contract::TrainingJobSpec spec = job_over("/data", ranks, batch);
  spec.model.layers = {layer("flatten"), layer("dense", 17, true, "relu"), layer("dense", 4)};
  return spec;
}

TEST(TrainingStep, any_number_of_ranks_gives_the_weights_of_one) {
  const struct {
    std::uint32_t samples;
    std::int64_t batch;
    std::int64_t steps;
  } cases[] = {{101, 10, 11}, {39, 32, 2}, {9, 4, 3}, {103, 4, 26}};
  for (const auto& c : cases) {
    base::FakeFiles files;
    put_row_set(files, "/data", c.samples, 4);
    const auto one = train_group(files, deep_job(1, c.batch));
    expect_ok(one);
    ASSERT_EQ(one[0].commits.size(), static_cast<std::size_t>(c.steps));
    for (int ranks = 2; ranks <= 4; ++ranks) {
      const auto many = train_group(files, deep_job(ranks, c.batch));
      expect_ok(many);
      EXPECT_LE(max_relative_difference(one[0].weights, many[0].weights), 1e-5)
          << c.samples << " samples, " << ranks << " ranks";
      std::int64_t samples = 0;
      std::uint64_t ids = 0, ids_of_one = 0;
      for (const RankResult& result : many) {
        EXPECT_EQ(result.hashes, many[0].hashes) << "the ranks must agree to the bit after every step";
        for (const auto& commit : result.commits) {
          samples += commit.samples;
          ids += commit.ids_hash;
          EXPECT_TRUE(std::isfinite(commit.loss_sum));
        }
      }
      for (const auto& commit : one[0].commits) ids_of_one += commit.ids_hash;
      EXPECT_EQ(samples, c.samples);
      EXPECT_EQ(ids, ids_of_one) << "the same samples";
      EXPECT_EQ(many[0].evaluation.correct, one[0].evaluation.correct);
      EXPECT_EQ(many[0].evaluation.samples, c.samples);
      EXPECT_NEAR(many[0].evaluation.loss, one[0].evaluation.loss, 1e-4 * one[0].evaluation.loss);
    }
  }
}

TEST(TrainingStep, reproducible_gives_the_same_bits_for_any_number_of_ranks) {
  base::FakeFiles files;
  put_row_set(files, "/data", 203, 4);
  std::string one;
  for (int ranks = 1; ranks <= 4; ++ranks) {
    contract::TrainingJobSpec spec = deep_job(ranks, 70);  // 5 units of 16, the last short; then 63: 4
    spec.training.reproducible = true;
    const auto results = train_group(files, spec);
    expect_ok(results);
    if (ranks == 1) one = results[0].hash;
    for (const RankResult& result : results) EXPECT_EQ(result.hash, one) << ranks;
  }
}

TEST(TrainingStep, TR_14_the_gradient_is_the_mean_over_samples_and_not_a_mean_of_means) {
  base::FakeFiles files;
  put_bias_set(files, "/data", {0, 0, 0, 1, 1});
  for (int ranks = 1; ranks <= 4; ++ranks) {
    const auto results = train_group(files, bias_job("/data", ranks, 5, 2));
    expect_ok(results);
    const auto replica = Replica::make(files, bias_job("/data", ranks, 5, 2), {});
    ASSERT_TRUE(replica.ok());
    const auto& parameters = (*replica)->engine().plan().parameters;
    const auto bias = parameters[1].offset_elements;
    ASSERT_EQ(parameters[1].name, "dense_1.bias");
    EXPECT_NEAR(results[0].weights[bias], 0.1, 1e-6);
    EXPECT_NEAR(results[0].weights[bias + 1], -0.1, 1e-6);
    EXPECT_NEAR(results[0].evaluation.loss / 5, 0.6781389, 1e-6) << "a mean of means gives 0.6931472";
  }
}

TEST(TrainingStep, TR_15_the_reported_loss_does_not_depend_on_the_number_of_ranks) {
  base::FakeFiles files;
  std::vector<std::uint8_t> labels;
  for (int i = 0; i < 20; ++i) labels.push_back(static_cast<std::uint8_t>(i % 5));
  put_bias_set(files, "/even", labels);
  put_bias_set(files, "/zeros", std::vector<std::uint8_t>(20, 0));
  for (const int ranks : {1, 2, 3, 4}) {
    const auto even = train_group(files, bias_job("/even", ranks, 20, 5));
    expect_ok(even);
    EXPECT_NEAR(even[0].commits[0].loss_sum / 20, 1.6094379124, 1e-6);
    const auto zeros = train_group(files, bias_job("/zeros", ranks, 20, 5));
    expect_ok(zeros);
    const auto replica = Replica::make(files, bias_job("/zeros", ranks, 20, 5), {});
    const auto bias = (*replica)->engine().plan().parameters[1].offset_elements;
    EXPECT_NEAR(zeros[0].weights[bias], 0.8, 1e-6);
    for (std::size_t k = 1; k < 5; ++k) EXPECT_NEAR(zeros[0].weights[bias + k], -0.2, 1e-6);
  }
}

TEST(TrainingStep, a_step_that_is_not_finite_ends_on_all_ranks_and_leaves_the_weights) {
  base::FakeFiles files;
  put_row_set(files, "/data", 40, 10);
  contract::TrainingJobSpec spec = job_over("/data", 2, 4);
  spec.model.layers = {layer("flatten"), layer("dense", 64), layer("dense", 10)};
  spec.training.optimizer.learning_rate = 1e30;
  const auto results = train_group(files, spec);
  for (const RankResult& result : results) {
    ASSERT_FALSE(result.status.ok());
    if (result.status.error().code != ErrorCode::kNumerical) continue;  // woken by the other's abort
    EXPECT_NE(result.status.error().message.find("step 2"), std::string::npos)
        << result.status.error().message;
    ASSERT_EQ(result.hashes.size(), 1u);
    EXPECT_EQ(result.hash, result.hashes[0]) << "the failed step must not touch the weights";
    for (const float w : result.weights) EXPECT_TRUE(std::isfinite(w));
  }
  EXPECT_EQ(results[0].status.error().code, ErrorCode::kNumerical);
}

TEST(TrainingStep, ranks_that_start_apart_are_made_equal_by_rank_0) {
  base::FakeFiles files;
  put_row_set(files, "/data", 12, 4);
  GroupOptions options;
  options.before = [](Replica& replica, int rank) {
    for (float& w : replica.engine().parameters()) w += static_cast<float>(rank);
  };
  const auto apart = train_group(files, deep_job(3, 6), options);
  const auto together = train_group(files, deep_job(3, 6));
  expect_ok(apart);
  for (const RankResult& result : apart) EXPECT_EQ(result.hashes, together[0].hashes);
}

TEST(TrainingStep, a_resumed_job_has_the_bits_of_one_that_was_never_stopped) {
  for (const std::size_t stop_after : {20u, 24u}) {  // in the middle of an epoch, and at its end
    base::FakeFiles files;
    put_row_set(files, "/data", 48, 4);
    contract::TrainingJobSpec spec = deep_job(2, 2);
    spec.training.epochs = 2;  // 48 steps
    const auto whole = train_group(files, spec);
    expect_ok(whole);
    GroupOptions first;
    first.checkpoint_root = "/checkpoints";
    first.max_steps = stop_after;
    expect_ok(train_group(files, spec, first));
    files.crash();
    files.recover();
    GroupOptions second;
    second.checkpoint_root = "/checkpoints";
    const auto resumed = train_group(files, spec, second);
    expect_ok(resumed);
    EXPECT_EQ(resumed[0].commits.size(), 48u - stop_after);
    for (const RankResult& result : resumed) {
      EXPECT_EQ(result.hash, whole[0].hash);
      EXPECT_EQ(result.position.step, 48);
      EXPECT_EQ(result.position.consumed, (std::vector<std::int64_t>{48, 48}));
    }
    for (std::size_t i = 0; i < resumed[0].commits.size(); ++i) {
      const auto& a = resumed[0].commits[i];
      const auto& b = whole[0].commits[i + stop_after];
      EXPECT_EQ(a.ids_hash, b.ids_hash);
      EXPECT_EQ(a.learning_rate, b.learning_rate);
    }
  }
}

TEST(TrainingStep, a_job_may_resume_on_another_number_of_ranks) {
  base::FakeFiles files;
  put_row_set(files, "/data", 48, 4);
  const auto whole = train_group(files, deep_job(3, 6));
  expect_ok(whole);
  GroupOptions options;
  options.checkpoint_root = "/checkpoints";
  options.max_steps = 3;
  expect_ok(train_group(files, deep_job(3, 6), options));
  options.max_steps = 100;
  const auto resumed = train_group(files, deep_job(2, 6), options);
  expect_ok(resumed);
  EXPECT_LE(max_relative_difference(resumed[0].weights, whole[0].weights), 1e-5);
  EXPECT_EQ(resumed[0].position.samples(), 48);
}

TEST(TrainingStep, a_step_sends_two_times_n_minus_one_nths_of_the_gradients) {
  base::FakeFiles files;
  put_row_set(files, "/data", 400, 10);
  for (const int ranks : {2, 4}) {
    contract::TrainingJobSpec spec = job_over("/data", ranks, 8);
    spec.model.layers = {layer("flatten"), layer("dense", 256, true, "relu"), layer("dense", 10)};
    GroupOptions options;
    options.max_steps = 3;
    const auto results = train_group(files, spec, options);
    expect_ok(results);
    const double exact = 3 * 2.0 * (ranks - 1) / ranks * (400 * 256 + 256 + 256 * 10 + 10) * sizeof(float);
    for (const RankResult& result : results)
      EXPECT_NEAR(static_cast<double>(result.sent_bytes), exact, 0.01 * exact);
  }
}

TEST(TrainingStep, phases_add_up_to_the_wall_time) {
  base::FakeFiles files;
  put_row_set(files, "/data", 40, 4);
  auto replica = Replica::make(files, deep_job(1, 8), {});
  ASSERT_TRUE(replica.ok()) << replica.error().message;
  TcpRingOptions options;
  options.member.peers = {"127.0.0.1:1"};
  TcpRing ring(options, nullptr);
  GradientReduction reduction(ring, (*replica)->engine().plan().buckets,
                              (*replica)->engine().gradient_arena());
  const base::MonotonicTime begin = base::real_clock().now();
  StepTimer timer(base::real_clock());
  std::vector<StepPhase> seen;
  const StepContext context{**replica, ring.rank(), ring, reduction, timer,
                            [&](StepPhase phase) { seen.push_back(phase); }};
  const auto plans = plans_of((*replica)->spec(), 40);
  ASSERT_TRUE(run_step(context, plans[0]).ok());
  const contract::PhaseSeconds phases = timer.take();
  const double wall = base::seconds(base::real_clock().now() - begin);
  EXPECT_LE(phases.total(), wall);
  EXPECT_GT(phases.total(), 0.5 * wall - 1e-3);
  EXPECT_GT(phases.forward, 0);
  EXPECT_GT(phases.backward, 0);
  EXPECT_EQ(seen,
            (std::vector<StepPhase>{StepPhase::kInputWait, StepPhase::kForward, StepPhase::kBackward,
                                    StepPhase::kCollectiveWait, StepPhase::kOptimizer, StepPhase::kOther}));
}

}  // namespace
}  // namespace evenkeel::trainer
