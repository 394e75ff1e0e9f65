// One rank on the real Fashion-MNIST, end to end through the loop's own pieces.
#include <cstdio>

#include "base/files.h"
#include "trainer/loop/training_fixture.h"

namespace evenkeel::trainer {
namespace {

constexpr char kFolder[] = "/usr/share/datasets/fashion-mnist";

contract::TrainingJobSpec job(const std::string& preset, double rate) {
  contract::TrainingJobSpec spec;
  spec.model.preset = preset;
  spec.dataset.format = "idx";
  spec.dataset.path = kFolder;
  spec.training.epochs = 1;
  spec.training.global_batch = 128;
  spec.training.optimizer.learning_rate = rate;
  return spec;
}

double accuracy_after_one_epoch(const contract::TrainingJobSpec& spec, std::int64_t parameters) {
  testing::GroupOptions options;
  options.before = [&](Replica& replica, int) {
    EXPECT_EQ(replica.train().samples, 60000);
    EXPECT_EQ(replica.engine().plan().parameter_count(), parameters);
    for (const std::string& warning : replica.engine().warnings()) ADD_FAILURE() << warning;
  };
  const auto results = testing::train_group(base::real_files(), spec, options);
  EXPECT_TRUE(results[0].status.ok()) << results[0].status.error().message;
  EXPECT_EQ(results[0].position.samples(), 60000);
  EXPECT_EQ(results[0].evaluation.samples, 10000);
  const auto n = static_cast<double>(results[0].evaluation.samples);
  const double accuracy = static_cast<double>(results[0].evaluation.correct) / n;
  std::printf("test accuracy after one epoch: %.4f, loss %.4f\n", accuracy, results[0].evaluation.loss / n);
  return accuracy;
}

TEST(OneRank, one_epoch_of_fashion_mnist_teaches_the_mlp) {
  if (!base::real_files().exists(kFolder))
    GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  EXPECT_GT(accuracy_after_one_epoch(job("mlp", 0.1), 669706), 0.8);
}

TEST(OneRank, one_epoch_of_fashion_mnist_teaches_lenet) {
  if (!base::real_files().exists(kFolder))
    GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  EXPECT_GT(accuracy_after_one_epoch(job("lenet", 0.05), 61706), 0.8);
}

}  // namespace
}  // namespace evenkeel::trainer
