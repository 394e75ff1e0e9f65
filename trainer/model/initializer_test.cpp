#include "trainer/model/initializer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "trainer/graph/operators.h"

namespace evenkeel::trainer {
namespace {

struct Row {
  std::int64_t fan_in, fan_out;
  double glorot_limit, he_stddev, he_sigma, he_limit;
};

TEST(Initializer, limits_and_widths_have_the_golden_values) {
  const Row rows[] = {{147, 3136, 0.04275040012, 0.11664236870, 0.13260455427, 0.20203050891},
                      {576, 576, 0.07216878365, 0.05892556510, 0.06698936571, 0.10206207262},
                      {256, 64, 0.13693063938, 0.08838834765, 0.10048404857, 0.15309310892},
                      {2048, 1000, 0.04436782547, 0.03125, 0.03552647607, 0.05412658774},
                      {2048, 5, 0.05406063598, 0.03125, 0.03552647607, 0.05412658774}};
  for (const Row& row : rows) {
    EXPECT_NEAR(uniform_limit(InitializerKind::kGlorotUniform, row.fan_in, row.fan_out), row.glorot_limit,
                1e-11);
    EXPECT_NEAR(uniform_limit(InitializerKind::kHeUniform, row.fan_in, row.fan_out), row.he_limit, 1e-11);
    EXPECT_NEAR(he_normal_stddev(row.fan_in), row.he_stddev, 1e-11);
    EXPECT_NEAR(he_normal_sampler_sigma(row.fan_in), row.he_sigma, 1e-11);
  }
}

std::vector<float> sample(InitializerKind kind, std::uint64_t seed, std::uint32_t index) {
  PlanParameter p;
  p.initializer = kind;
  p.fan_in = 784;
  p.fan_out = 512;
  p.elements = 784 * 128;
  std::vector<float> values(static_cast<std::size_t>(p.elements));
  initialize_tensor(p, seed, index, values);
  return values;
}

// Mean, deviation and largest magnitude of 100,352 values against what the distribution says; bounds are five
// sigma.
TEST(Initializer, samples_have_the_distribution) {
  const struct {
    InitializerKind kind;
    double stddev, largest;
  } cases[] = {{InitializerKind::kHeNormal, he_normal_stddev(784), 2 * he_normal_sampler_sigma(784)},
               {InitializerKind::kHeUniform, he_normal_stddev(784),
                uniform_limit(InitializerKind::kHeUniform, 784, 512)},
               {InitializerKind::kGlorotUniform, std::sqrt(2.0 / (784 + 512)),
                uniform_limit(InitializerKind::kGlorotUniform, 784, 512)}};
  for (const auto& c : cases) {
    const auto values = sample(c.kind, 1, 0);
    double sum = 0, squares = 0, largest = 0;
    for (const float v : values) {
      sum += v;
      squares += static_cast<double>(v) * v;
      largest = std::max(largest, std::abs(static_cast<double>(v)));
    }
    const auto n = static_cast<double>(values.size());
    EXPECT_NEAR(sum / n, 0, 5 * c.stddev / std::sqrt(n));
    EXPECT_NEAR(std::sqrt(squares / n), c.stddev, 5 * c.stddev / std::sqrt(2 * n));
    EXPECT_LE(largest, c.largest * (1 + 1e-6));
    EXPECT_GT(largest, 0.99 * c.largest);
  }
}

TEST(Initializer, depends_on_seed_and_tensor_and_on_nothing_else) {
  EXPECT_EQ(sample(InitializerKind::kHeNormal, 1, 0), sample(InitializerKind::kHeNormal, 1, 0));
  EXPECT_NE(sample(InitializerKind::kHeNormal, 1, 0), sample(InitializerKind::kHeNormal, 2, 0));
  EXPECT_NE(sample(InitializerKind::kHeNormal, 1, 0), sample(InitializerKind::kHeNormal, 1, 1));
}

TEST(Initializer, fills_the_arena_with_zero_biases_and_zero_padding) {
  Graph graph;
  const TensorId x = add_input(graph, {3}).value();
  (void)add_linear(graph, "a", x, 5, Bias::kZeros, InitializerKind::kHeUniform).value();
  const Plan plan = compile_plan(graph, 1, PlanMode::kTraining, {}).value();
  std::vector<float> arena(plan.common_layout_elements(), 9.0f);
  initialize_parameters(plan, 1, arena);
  int zeros = 0;
  for (const float v : arena) zeros += v == 0.0f;
  EXPECT_EQ(zeros, static_cast<int>(arena.size()) - 15);
}

}  // namespace
}  // namespace evenkeel::trainer
