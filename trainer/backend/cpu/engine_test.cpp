// The fast operators against their naive twins, the twins against finite differences, and what a rank must
// keep: sums, zeros for no samples, the same bits twice.
#include "trainer/backend/cpu/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "trainer/backend/cpu/engine_fixture.h"
#include "trainer/graph/operators.h"

namespace evenkeel::trainer {
namespace {

struct Layer {
  enum class Kind { kFlatten, kDense, kDenseNoBias, kRelu } kind;
  std::int64_t units = 0;
};
constexpr Layer kFlat{Layer::Kind::kFlatten};
constexpr Layer kReluLayer{Layer::Kind::kRelu};
Layer dense(std::int64_t units) {
  return {Layer::Kind::kDense, units};
}
Layer dense_no_bias(std::int64_t units) {
  return {Layer::Kind::kDenseNoBias, units};
}

Graph graph_of(const Shape& sample, const std::vector<Layer>& layers) {
  Graph graph;
  TensorId x = add_input(graph, sample).value();
  int n = 0;
  for (const Layer& layer : layers) {
    const std::string name = "layer_" + std::to_string(++n);
    switch (layer.kind) {
      case Layer::Kind::kFlatten:
        x = add_flatten(graph, name, x).value();
        break;
      case Layer::Kind::kRelu:
        x = add_relu(graph, name, x).value();
        break;
      case Layer::Kind::kDense:
        x = add_linear(graph, name, x, layer.units, Bias::kZeros, InitializerKind::kHeNormal).value();
        break;
      case Layer::Kind::kDenseNoBias:
        x = add_linear(graph, name, x, layer.units, Bias::kNone, InitializerKind::kHeNormal).value();
        break;
    }
  }
  return graph;
}

struct Case {
  std::string name;
  Shape sample;
  std::vector<Layer> layers;
};

// Every operator, fused and not, at sizes that fill no vector register.
std::vector<Case> cases() {
  return {{"dense", {7}, {dense(3)}},
          {"flatten_dense", {1, 5}, {kFlat, dense(5)}},
          {"one_by_one", {1, 1}, {kFlat, dense(2)}},
          {"no_bias", {1, 9}, {kFlat, dense_no_bias(4)}},
          {"fused_relu", {13}, {dense(17), kReluLayer, dense(11)}},
          {"relu_twice", {13}, {dense(17), kReluLayer, kReluLayer, dense(3)}},
          {"relu_first", {2, 3}, {kFlat, kReluLayer, dense(33), kReluLayer, dense(2)}},
          {"flatten_inside", {6}, {dense(15), kFlat, dense(7)}},
          {"one_class", {4}, {dense(1)}},
          {"wide", {255}, {dense(129), kReluLayer, dense(257), kReluLayer, dense(10)}}};
}

using testing::load;
using testing::Problem;
using testing::problem_for;

TEST(CpuBackend, agrees_with_the_naive_twin_for_every_operator_and_odd_sizes) {
  for (const Case& c : cases()) {
    for (const std::int64_t batch : {1, 2, 7, 33}) {
      for (const int threads : {1, 2}) {
        SCOPED_TRACE(c.name + " batch " + std::to_string(batch) + " threads " + std::to_string(threads));
        EngineOptions options;
        options.threads = threads;
        testing::expect_agrees_with_twin(graph_of(c.sample, c.layers), batch, options);
      }
    }
  }
}

TEST(CpuBackend, the_naive_twin_agrees_with_finite_differences) {
  const Graph graph =
      graph_of({1, 5}, {kFlat, dense(6), kReluLayer, dense(5), kReluLayer, kReluLayer, dense_no_bias(3)});
  testing::expect_twin_agrees_with_finite_differences(graph, 3, {}, 1e-7);
}

// A linear layer whose kernel row 0 meets x = 1: the bias is the logits, so goldens of cross-entropy can be
// fed in.
struct BiasModel {
  std::unique_ptr<Engine> engine;
  Executor* training = nullptr;
  std::size_t bias = 0;

  BiasModel(std::int64_t batch, std::int64_t classes) {
    engine = std::move(Engine::create(graph_of({1, 1}, {kFlat, dense(classes)}), batch, {}).value());
    training = engine->executor(batch, PlanMode::kTraining).value();
    bias = engine->plan().parameters[1].offset_elements;
  }
  LossSums run(const std::vector<std::int32_t>& labels) {
    const std::vector<float> zeros(labels.size(), 0.0f);
    const LossSums sums = training->forward({.features = zeros, .labels = labels}).value();
    EXPECT_TRUE(training->backward(nullptr).ok());
    return sums;
  }
};

TEST(CrossEntropy, has_the_golden_values) {
  BiasModel model(1, 3);
  const float z[] = {2.0f, 1.0f, 0.1f};
  std::copy(std::begin(z), std::end(z),
            model.engine->parameters().begin() + static_cast<std::ptrdiff_t>(model.bias));
  EXPECT_NEAR(model.run({0}).loss, 0.41703001628, 1e-6);
  const auto gradient = model.engine->gradients().subspan(model.bias, 3);
  EXPECT_NEAR(gradient[0], 0.6590011389 - 1, 1e-6);
  EXPECT_NEAR(gradient[1], 0.2424329707, 1e-6);
  EXPECT_NEAR(gradient[2], 0.0985658904, 1e-6);
  EXPECT_NEAR(model.run({2}).loss, 2.31703001628, 3e-6);
}

TEST(CrossEntropy, untrained_costs_the_logarithm_of_the_classes_and_ties_go_to_the_lower_index) {
  BiasModel model(5, 5);
  const LossSums sums = model.run({0, 1, 2, 3, 4});
  EXPECT_NEAR(sums.loss / 5, 1.6094379124, 1e-6);
  EXPECT_EQ(sums.correct, 1);
}

TEST(CrossEntropy, survives_huge_logits_and_reports_nan_as_not_correct) {
  BiasModel model(1, 2);
  auto z = model.engine->parameters().subspan(model.bias, 2);
  z[0] = 1e30f;
  EXPECT_EQ(model.run({0}).loss, 0.0);
  z[0] = z[1] = std::numeric_limits<float>::quiet_NaN();
  const LossSums sums = model.run({0});
  EXPECT_TRUE(std::isnan(sums.loss));
  EXPECT_EQ(sums.correct, 0);
}

// The B-set: only biases learn, and move by n_k/n - 1/K whatever the split, because ranks keep sums.
TEST(GradientSums, of_any_split_add_up_to_the_gradient_of_the_whole) {
  const std::vector<std::int32_t> labels = {0, 0, 0, 1, 1};
  BiasModel whole(5, 2), three(3, 2), two(2, 2);
  EXPECT_EQ(whole.run(labels).count, 5);
  three.run({0, 0, 0});
  two.run({1, 1});
  const float sum = three.engine->gradients()[three.bias] + two.engine->gradients()[two.bias];
  EXPECT_FLOAT_EQ(sum, whole.engine->gradients()[whole.bias]);
  EXPECT_FLOAT_EQ(sum / 5, -0.1f);
}

TEST(GradientSums, a_skipped_record_counts_nowhere) {
  BiasModel with(3, 2), without(2, 2);
  const LossSums sums = with.run({0, -1, 1});
  EXPECT_EQ(sums.count, 2);
  EXPECT_FLOAT_EQ(static_cast<float>(sums.loss), static_cast<float>(without.run({0, 1}).loss));
  EXPECT_EQ(with.engine->gradients()[with.bias], without.engine->gradients()[without.bias]);
}

TEST(GradientSums, no_samples_give_zeros_and_every_bucket_is_reported) {
  auto engine =
      Engine::create(graph_of({784}, {dense(512), kReluLayer, dense(512), kReluLayer, dense(10)}), 4, {})
          .value();
  std::ranges::fill(engine->gradients(), 3.0f);
  Executor& executor = *engine->executor(0, PlanMode::kTraining).value();
  std::vector<int> buckets;
  const LossSums sums = executor.forward({}).value();
  ASSERT_TRUE(executor.backward([&](int bucket) { buckets.push_back(bucket); }).ok());
  EXPECT_EQ(sums.count, 0);
  EXPECT_EQ(sums.loss, 0.0);
  for (const float g : engine->gradients()) ASSERT_EQ(g, 0.0f);
  ASSERT_EQ(buckets.size(), engine->plan().buckets.size());
  for (std::size_t i = 0; i < buckets.size(); ++i) EXPECT_EQ(buckets[i], static_cast<int>(i));
}

TEST(CpuBackend, a_reported_bucket_is_complete_and_not_written_again) {
  const Graph graph = graph_of({784}, {dense(512), kReluLayer, dense(512), kReluLayer, dense(10)});
  auto engine = Engine::create(graph, 16, {}).value();
  const Plan& plan = engine->plan();
  const Problem p = problem_for(plan, 3);
  load(*engine, p);
  Executor& executor = *engine->executor(16, PlanMode::kTraining).value();
  ASSERT_TRUE(executor.forward(p.input()).ok());
  std::vector<float> as_reported(engine->gradients().size());
  const base::Status status = executor.backward([&](int index) {
    const Bucket& b = plan.buckets[static_cast<std::size_t>(index)];
    for (auto i = b.offset_elements; i < b.offset_elements + b.elements; ++i)
      as_reported[i] = engine->gradients()[i];
  });
  ASSERT_TRUE(status.ok());
  EXPECT_TRUE(std::ranges::equal(as_reported, engine->gradients()));
}

TEST(CpuBackend, gives_the_same_bits_twice_and_plans_of_other_batches_do_not_disturb) {
  auto engine = Engine::create(graph_of({50}, {dense(64), kReluLayer, dense(10)}), 8, {}).value();
  const Problem p = problem_for(engine->plan(), 1);
  load(*engine, p);
  Executor& executor = *engine->executor(8, PlanMode::kTraining).value();
  const LossSums first = executor.forward(p.input()).value();
  ASSERT_TRUE(executor.backward(nullptr).ok());
  const std::vector<float> gradients(engine->gradients().begin(), engine->gradients().end());
  // Larger than what arena 5 was made for: it moves, and the first executor must follow.
  Executor& large = *engine->executor(500, PlanMode::kEvaluation).value();
  const std::vector<float> features(500 * 50, 0.5f);
  const std::vector<std::int32_t> labels(500, 3);
  EXPECT_EQ(large.forward({.features = features, .labels = labels}).value().count, 500);
  EXPECT_EQ(engine->executor(8, PlanMode::kTraining).value(), &executor);
  const LossSums second = executor.forward(p.input()).value();
  ASSERT_TRUE(executor.backward(nullptr).ok());
  EXPECT_EQ(first.loss, second.loss);
  EXPECT_TRUE(std::ranges::equal(gradients, engine->gradients()));
}

// While one executor runs another is compiled; what is taken over is what would have been compiled here.
TEST(CpuBackend, a_batch_that_is_expected_is_compiled_aside) {
  const Graph graph = graph_of({50}, {dense(64), kReluLayer, dense(10)});
  auto engine = Engine::create(graph, 8, {}).value();
  auto other = Engine::create(graph, 8, {}).value();
  ASSERT_EQ(engine->compiled().here, 1);
  const Problem p = problem_for(engine->plan(), 1);
  for (Engine* each : {engine.get(), other.get()}) load(*each, p);
  engine->expect(500, PlanMode::kTraining);
  engine->expect(500, PlanMode::kTraining);  // begun already
  engine->expect(8, PlanMode::kTraining);    // there already
  for (Engine* each : {engine.get(), other.get()}) {
    Executor& small = *each->executor(8, PlanMode::kTraining).value();
    ASSERT_TRUE(small.forward(p.input()).ok());
    ASSERT_TRUE(small.backward(nullptr).ok());
  }
  const std::vector<float> features(500 * 50, 0.5f);
  const std::vector<std::int32_t> labels(500, 3);
  std::vector<LossSums> sums;
  for (Engine* each : {engine.get(), other.get()}) {
    Executor& large = *each->executor(500, PlanMode::kTraining).value();
    sums.push_back(large.forward({.features = features, .labels = labels}).value());
    ASSERT_TRUE(large.backward(nullptr).ok());
  }
  EXPECT_EQ(sums[0].loss, sums[1].loss);
  EXPECT_TRUE(std::ranges::equal(engine->gradients(), other->gradients()));
  EXPECT_EQ(engine->compiled().here, 1);
  EXPECT_EQ(engine->compiled().aside, 1);
  EXPECT_EQ(other->compiled().here, 2);
  engine->expect(700, PlanMode::kTraining);  // nobody asks for it: it ends with the engine
}

TEST(CpuBackend, what_was_expected_and_does_not_fit_is_an_error_where_it_is_asked_for) {
  EngineOptions options;
  options.memory_limit_bytes = 16 << 20;
  options.memory_limit_source = "a test";
  auto engine = Engine::create(graph_of({50}, {dense(64), kReluLayer, dense(10)}), 8, options).value();
  engine->expect(1'000'000, PlanMode::kTraining);
  const auto asked = engine->executor(1'000'000, PlanMode::kTraining);
  ASSERT_FALSE(asked.ok());
  EXPECT_EQ(asked.error().code, base::ErrorCode::kInvalidInput);
  EXPECT_NE(asked.error().message.find("a test"), std::string::npos) << asked.error().message;
  EXPECT_TRUE(engine->executor(8, PlanMode::kTraining).ok());
}

TEST(CpuBackend, evaluation_gives_the_loss_of_training) {
  auto engine = Engine::create(graph_of({50}, {dense(64), kReluLayer, dense(10)}), 8, {}).value();
  const Problem p = problem_for(engine->plan(), 1);
  load(*engine, p);
  const LossSums a = engine->executor(8, PlanMode::kTraining).value()->forward(p.input()).value();
  const LossSums b = engine->executor(8, PlanMode::kEvaluation).value()->forward(p.input()).value();
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.correct, b.correct);
}

TEST(CpuBackend, out_of_memory_is_an_error_with_numbers_before_anything_is_allocated) {
  EngineOptions options;
  options.memory_limit_bytes = std::uint64_t{1} << 30;
  options.memory_limit_source = "cgroup";
  const auto engine = Engine::create(graph_of({784}, {dense(1 << 24), dense(10)}), 128, options);
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.error().code, base::ErrorCode::kInvalidInput);
  EXPECT_NE(engine.error().message.find("1024 MiB"), std::string::npos) << engine.error().message;
  EXPECT_NE(engine.error().message.find("cgroup"), std::string::npos);
}

TEST(CpuBackend, uses_no_reference_kernel_for_the_preset) {
  for (const std::int64_t batch : {1, 32, 128}) {
    auto engine =
        Engine::create(graph_of({28, 28}, {kFlat, dense(512), kReluLayer, dense(512), kReluLayer, dense(10)}),
                       batch, {})
            .value();
    for (const std::string& warning : engine->warnings()) ADD_FAILURE() << warning;
  }
}

}  // namespace
}  // namespace evenkeel::trainer
