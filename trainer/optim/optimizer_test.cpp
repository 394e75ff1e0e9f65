// Golden values (training-semantics, optimizers): one scalar weight, five steps.
#include "trainer/optim/optimizer.h"

#include <gtest/gtest.h>

#include <array>

#include "trainer/optim/sgd.h"

namespace evenkeel::trainer {
namespace {

using contract::OptimizerConvention;

constexpr std::array<double, 5> kGradients = {0.1, -0.2, 0.3, 0.05, 0.0};
constexpr std::array<double, 5> kConstantRate = {0.1, 0.1, 0.1, 0.1, 0.1};
constexpr std::array<double, 5> kFallingRate = {0.1, 0.1, 0.01, 0.01, 0.01};

struct Golden {
  const char* name;
  OptimizerConvention convention;
  double weight_decay;
  std::array<double, 5> rates;
  std::array<double, 5> expected;
};

TEST(Sgd, follows_the_golden_values) {
  const Golden goldens[] = {
      {"momentum", OptimizerConvention::kPyTorch, 0, kConstantRate, {0.99, 1.001, 0.9809, 0.95781, 0.937029}},
      {"momentum Keras",
       OptimizerConvention::kKeras,
       0,
       kConstantRate,
       {0.99, 1.001, 0.9809, 0.95781, 0.937029}},
      {"rate change Keras",
       OptimizerConvention::kKeras,
       0,
       kFallingRate,
       {0.99, 1.001, 1.0079, 1.01361, 1.018749}},
      {"rate change PyTorch",
       OptimizerConvention::kPyTorch,
       0,
       kFallingRate,
       {0.99, 1.001, 0.99899, 0.996681, 0.9946029}},
      {"decay Keras",
       OptimizerConvention::kKeras,
       0.01,
       kConstantRate,
       {0.989, 0.999011, 0.977911989, 0.953844077011, 0.932109232934}},
      {"decay PyTorch",
       OptimizerConvention::kPyTorch,
       0.01,
       kConstantRate,
       {0.989, 0.998111, 0.975312789, 0.948819086311, 0.924025934805}},
  };
  for (const Golden& golden : goldens) {
    contract::OptimizerSpec spec;
    spec.convention = golden.convention;
    Sgd sgd(spec, {{0, 1, golden.weight_decay}});
    std::array<float, 1> w = {1.0f}, v = {0.0f};
    for (std::size_t step = 0; step < 5; ++step) {
      // Three samples whose sum is three times the mean: the division is the optimizer's.
      const std::array<float, 1> g = {static_cast<float>(3 * kGradients[step])};
      sgd.step(w, g, v, {golden.rates[step], 3.0});
      EXPECT_NEAR(w[0], golden.expected[step], 2e-6 * golden.expected[step])
          << golden.name << " step " << step + 1;
    }
  }
}

// Gradients 1, 2, 6 on two ranks with 2 and 1 samples: the true mean is 3, means of means say 3.75.
TEST(Sgd, divides_the_sum_by_the_reduced_count) {
  contract::OptimizerSpec spec;
  spec.momentum = 0;
  Sgd sgd(spec, {{0, 1, 0.0}});
  EXPECT_EQ(sgd.slots(), 0);
  std::array<float, 1> w = {0.0f};
  const std::array<float, 1> g = {(1.0f + 2.0f) + 6.0f};
  sgd.step(w, g, {}, {1.0, 2.0 + 1.0});
  EXPECT_FLOAT_EQ(w[0], -3.0f);
}

TEST(Sgd, a_step_without_samples_changes_nothing) {
  Sgd sgd({}, {{0, 2, 0.01}});
  std::array<float, 2> w = {1.0f, 2.0f}, v = {0.5f, 0.5f};
  const std::array<float, 2> g = {0.0f, 0.0f};
  sgd.step(w, g, v, {0.1, 0.0});
  EXPECT_EQ(w, (std::array<float, 2>{1.0f, 2.0f}));
  EXPECT_EQ(v, (std::array<float, 2>{0.5f, 0.5f}));
}

Plan small_plan() {
  Graph graph;
  const TensorId x = add_input(graph, {3}).value();
  const TensorId y = add_linear(graph, "a", x, 4, Bias::kZeros, InitializerKind::kHeNormal).value();
  (void)add_linear(graph, "b", y, 2, Bias::kZeros, InitializerKind::kHeNormal).value();
  return compile_plan(graph, 2, PlanMode::kTraining, {}).value();
}

TEST(Sgd, decays_kernels_and_leaves_biases_alone) {
  const Plan plan = small_plan();
  contract::OptimizerSpec spec;
  spec.weight_decay = 0.5;
  const auto sgd = make_optimizer(spec, &plan);
  ASSERT_TRUE(sgd.ok());
  const std::size_t n = plan.common_layout_elements();
  std::vector<float> w(n, 0.0f), g(n, 0.0f), v(n, 0.0f);
  for (const PlanParameter& p : plan.parameters) {
    std::fill_n(w.begin() + static_cast<std::ptrdiff_t>(p.offset_elements), p.elements, 1.0f);
  }
  (*sgd)->step(w, g, v, {0.1, 1.0});
  for (const PlanParameter& p : plan.parameters) {
    const bool is_kernel = p.name.find("kernel") != std::string::npos;
    for (std::int64_t i = 0; i < p.elements; ++i) {
      EXPECT_FLOAT_EQ(w[p.offset_elements + static_cast<std::uint64_t>(i)], is_kernel ? 0.95f : 1.0f)
          << p.name;
    }
  }
}

TEST(Sgd, segments_cover_the_layout_once_and_melt_together_without_decay) {
  const Plan plan = small_plan();
  EXPECT_EQ(segments_of(&plan, 0.0).size(), 1u);
  const auto segments = segments_of(&plan, 0.1);
  std::uint64_t at = 0;
  for (const Segment& s : segments) {
    EXPECT_EQ(s.begin, at);
    at = s.end;
  }
  EXPECT_EQ(at, plan.common_layout_elements());
}

TEST(MakeOptimizer, refuses_by_name_what_it_does_not_know) {
  contract::OptimizerSpec spec;
  spec.type = "adam";
  const auto refused = make_optimizer(spec, nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, base::ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().message.find("adam"), std::string::npos);
  spec.type = "sgd";
  spec.momentum = 1.0;
  EXPECT_EQ(make_optimizer(spec, nullptr).error().code, base::ErrorCode::kInvalidInput);
}

}  // namespace
}  // namespace evenkeel::trainer
