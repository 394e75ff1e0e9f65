#include "trainer/optim/finite.h"

#include <gtest/gtest.h>

#include <limits>

#include "trainer/graph/operators.h"

namespace evenkeel::trainer {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Finite, sees_one_bad_value_anywhere) {
  for (const float bad : {kInf, -kInf, kNan}) {
    for (std::size_t at = 0; at < 67; ++at) {
      std::vector<float> values(67, 1.0f);
      EXPECT_TRUE(all_finite(values));
      values[at] = bad;
      EXPECT_FALSE(all_finite(values)) << at;
    }
  }
  const std::vector<float> extremes = {std::numeric_limits<float>::max(), -0.0f, 1e-45f};
  EXPECT_TRUE(all_finite(extremes));
}

// A linear layer, batch normalisation, another linear layer.
Plan normalised_plan() {
  Graph graph;
  const TensorId x = add_input(graph, {3}).value();
  const TensorId y = add_linear(graph, "dense_1", x, 4, Bias::kZeros, InitializerKind::kHeNormal).value();
  const TensorId z = add_batch_norm(graph, "bn_1", y, {}).value();
  (void)add_linear(graph, "dense_2", z, 2, Bias::kZeros, InitializerKind::kHeNormal).value();
  return compile_plan(graph, 2, PlanMode::kTraining, {}).value();
}

std::size_t gradient_elements(const Plan& plan) {
  return plan.arena_bytes[static_cast<std::size_t>(Arena::kGradients)] / sizeof(float);
}

TEST(Finite, names_the_step_and_the_parameter_or_the_layer) {
  const Plan plan = normalised_plan();
  ASSERT_EQ(plan.statistics.size(), 1u);
  std::vector<float> gradients(gradient_elements(plan), 0.0f);
  EXPECT_TRUE(check_gradients(plan, gradients, 5).ok());
  const auto message_with_nan_at = [&](std::uint64_t at) {
    std::vector<float> damaged = gradients;
    damaged[at] = kNan;
    const auto status = check_gradients(plan, damaged, 5);
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, base::ErrorCode::kNumerical);
    return status.error().message;
  };
  for (const PlanParameter& p : plan.parameters) {
    EXPECT_EQ(
        message_with_nan_at(p.offset_elements),
        "step 5: the gradient of " + p.name + " is not finite; lower the learning rate, or check the data");
  }
  EXPECT_EQ(message_with_nan_at(plan.statistics[0].sums_offset_elements + 7),
            "step 5: the batch statistics of " + plan.statistics[0].layer +
                " are not finite; lower the learning rate, or check the data");
}

TEST(Finite, the_common_layout_alone_is_enough) {
  const Plan plan = normalised_plan();
  std::vector<float> gradients(plan.common_layout_elements(), 0.0f);
  EXPECT_TRUE(check_gradients(plan, gradients, 5).ok());
  gradients[plan.parameters[0].offset_elements] = kInf;
  EXPECT_FALSE(check_gradients(plan, gradients, 5).ok());
}

TEST(Finite, loss_and_norm) {
  EXPECT_TRUE(check_loss(1.5, 2).ok());
  EXPECT_EQ(check_loss(std::numeric_limits<double>::quiet_NaN(), 2).error().code,
            base::ErrorCode::kNumerical);
  const std::vector<float> v = {3.0f, 4.0f};
  EXPECT_DOUBLE_EQ(squared_norm(v), 25.0);
  for (std::size_t n = 0; n < 70; ++n) {  // whole rows of lanes and rests
    std::vector<float> numbers(n);
    for (std::size_t i = 0; i < n; ++i) numbers[i] = static_cast<float>(i + 1);
    const auto m = static_cast<double>(n);
    EXPECT_EQ(squared_norm(numbers), m * (m + 1) * (2 * m + 1) / 6);
  }
}

}  // namespace
}  // namespace evenkeel::trainer
