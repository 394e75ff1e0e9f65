// Stations 8 to 12 of a job in one process: data, batches, graph, gradients, step. One rank, one epoch of
// Fashion-MNIST.
#include <gtest/gtest.h>

#include <cstdio>

#include "base/files.h"
#include "trainer/backend/cpu/engine.h"
#include "trainer/data/batch.h"
#include "trainer/data/idx_reader.h"
#include "trainer/model/initializer.h"
#include "trainer/model/model.h"
#include "trainer/optim/learning_rate.h"
#include "trainer/optim/optimizer.h"

namespace evenkeel::trainer {
namespace {

constexpr const char* kFolder = "/usr/share/datasets/fashion-mnist";

contract::TrainingJobSpec job() {
  contract::TrainingJobSpec spec;
  spec.model.preset = "mlp";
  spec.dataset.path = kFolder;
  spec.training.epochs = 1;
  spec.training.global_batch = 128;
  return spec;
}

LossSums evaluate(Engine& engine, const Dataset& data) {
  const auto reader = BatchReader::make(data, {}, {});
  const EpochOrder order(static_cast<std::uint64_t>(data.samples), Shuffle::kOff, 0, 0);
  HostBatch batch;
  LossSums total;
  for (std::int64_t at = 0; at < data.samples; at += 500) {
    (void)reader->read(order, at, std::min(data.samples, at + 500), batch);
    const LossSums part = engine.executor(batch.samples(), PlanMode::kEvaluation)
                              .value()
                              ->forward(batch.features, batch.labels);
    total.loss += part.loss;
    total.count += part.count;
    total.correct += part.correct;
  }
  return total;
}

TEST(OneRank, one_epoch_of_fashion_mnist_learns) {
  if (!base::real_files().exists(kFolder))
    GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  const contract::TrainingJobSpec spec = job();
  const auto data = load_dataset(base::real_files(), spec.dataset, output_classes(spec.model));
  ASSERT_TRUE(data.ok()) << data.error().message;
  ASSERT_EQ(data->train.samples, 60000);
  const auto graph = build_model(spec.model, data->train.sample_shape, data->train.num_classes);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  ASSERT_EQ(graph->parameter_count(), 669706);
  auto engine = Engine::create(*graph, spec.global_batch(), {});
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  EXPECT_TRUE((*engine)->warnings().empty()) << (*engine)->warnings()[0];
  initialize_parameters((*engine)->plan(), spec.training.seed, (*engine)->parameters());
  const auto optimizer = make_optimizer(spec.training.optimizer, &(*engine)->plan());
  ASSERT_TRUE(optimizer.ok());

  const auto reader = BatchReader::make(data->train, spec.dataset.mean, spec.dataset.stddev);
  const EpochOrder order(60000, Shuffle::kOn, spec.dataset.shuffle_seed, 0);
  HostBatch batch;
  std::int64_t consumed = 0;
  for (std::int64_t at = 0; at < 60000; at += spec.global_batch()) {
    consumed +=
        reader->read(order, at, std::min<std::int64_t>(60000, at + spec.global_batch()), batch).consumed;
    const auto executor = (*engine)->executor(batch.samples(), PlanMode::kTraining);
    ASSERT_TRUE(executor.ok()) << executor.error().message;
    const LossSums sums = (*executor)->forward(batch.features, batch.labels);
    (*executor)->backward(nullptr);
    const double rate = learning_rate(spec.training, 128, 128, 0.0).value();
    (*optimizer)
        ->step((*engine)->parameters(), (*engine)->gradients(), (*engine)->optimizer_state(),
               {rate, static_cast<double>(sums.count)});
  }
  EXPECT_EQ(consumed, 60000);
  const LossSums test = evaluate(**engine, *data->eval);
  const double accuracy = static_cast<double>(test.correct) / static_cast<double>(test.count);
  std::printf("test accuracy after one epoch: %.4f, loss %.4f\n", accuracy,
              test.loss / static_cast<double>(test.count));
  EXPECT_EQ(test.count, 10000);
  EXPECT_GT(accuracy, 0.8);
}

}  // namespace
}  // namespace evenkeel::trainer
