#include "trainer/optim/finite.h"

#include <gtest/gtest.h>

#include <limits>

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

TEST(Finite, names_the_step_and_the_parameter) {
  Graph graph;
  const TensorId x = add_input(graph, {3}).value();
  (void)add_linear(graph, "dense_1", x, 4, Bias::kZeros, InitializerKind::kHeNormal).value();
  const Plan plan = compile_plan(graph, 2, PlanMode::kTraining, {}).value();
  std::vector<float> gradients(plan.common_layout_elements(), 0.0f);
  EXPECT_TRUE(check_gradients(plan, gradients, 5).ok());
  gradients[plan.parameters[1].offset_elements] = kNan;
  const auto status = check_gradients(plan, gradients, 5);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, base::ErrorCode::kNumerical);
  EXPECT_NE(status.error().message.find("step 5"), std::string::npos);
  EXPECT_NE(status.error().message.find("dense_1.bias"), std::string::npos);
}

TEST(Finite, loss_and_norm) {
  EXPECT_TRUE(check_loss(1.5, 2).ok());
  EXPECT_EQ(check_loss(std::numeric_limits<double>::quiet_NaN(), 2).error().code,
            base::ErrorCode::kNumerical);
  const std::vector<float> v = {3.0f, 4.0f};
  EXPECT_DOUBLE_EQ(squared_norm(v), 25.0);
}

}  // namespace
}  // namespace evenkeel::trainer
