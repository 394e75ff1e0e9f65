// Golden values (training-semantics, optimizers): one scalar weight, five steps. Each is met by the naive
// twin in double to the digits of the table, and by the fp32 code within 2e-6.
#include "trainer/optim/optimizer.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "trainer/graph/operators.h"
#include "trainer/optim/adam.h"
#include "trainer/optim/lars.h"
#include "trainer/optim/optimizer_twin.h"
#include "trainer/optim/sgd.h"

namespace evenkeel::trainer {
namespace {

using contract::OptimizerConvention;
using Five = std::array<double, 5>;

constexpr Five kGradients = {0.1, -0.2, 0.3, 0.05, 0.0};
constexpr Five kConstantRate = {0.1, 0.1, 0.1, 0.1, 0.1};
constexpr Five kFallingRate = {0.1, 0.1, 0.01, 0.01, 0.01};
constexpr Five kAdamRate = {1e-3, 1e-3, 1e-3, 1e-3, 1e-3};
constexpr auto kPyTorch = OptimizerConvention::kPyTorch;
constexpr auto kKeras = OptimizerConvention::kKeras;

struct Golden {
  const char* name;
  contract::OptimizerSpec spec;
  Five rates;
  Five expected;
};

contract::OptimizerSpec spec_of(const char* type, OptimizerConvention convention, double weight_decay = 0,
                                bool nesterov = false) {
  contract::OptimizerSpec spec;
  spec.type = type;
  spec.convention = convention;
  spec.weight_decay = weight_decay;
  spec.nesterov = nesterov;
  return spec;
}

std::vector<Golden> goldens() {
  const Five momentum = {0.99, 1.001, 0.9809, 0.95781, 0.937029};
  const Five nesterov = {0.981, 1.0109, 0.96281, 0.937029, 0.9183261};
  const Five keras_decay = {0.989, 0.999011, 0.977911989, 0.953844077011, 0.932109232934};
  const Five pytorch_decay = {0.989, 0.998111, 0.975312789, 0.948819086311, 0.924025934805};
  const Five keras_adam = {0.999000031622, 0.999366129971, 0.999022891792, 0.998667186925, 0.998366535204};
  const Five pytorch_adam = {0.999000000100, 0.999366103604, 0.999022862539, 0.998667154710, 0.998366500484};
  const Five keras_adamw = {0.998990031622, 0.999346140071, 0.998992908430, 0.998627213635, 0.998316575641};
  const Five pytorch_adamw = {0.998990000100, 0.999346113704, 0.998992879178, 0.998627181420, 0.998316540922};
  return {
      {"momentum", spec_of("sgd", kPyTorch), kConstantRate, momentum},
      {"momentum Keras", spec_of("sgd", kKeras), kConstantRate, momentum},
      {"Nesterov", spec_of("sgd", kPyTorch, 0, true), kConstantRate, nesterov},
      {"Nesterov Keras", spec_of("sgd", kKeras, 0, true), kConstantRate, nesterov},
      {"rate change Keras", spec_of("sgd", kKeras), kFallingRate, {0.99, 1.001, 1.0079, 1.01361, 1.018749}},
      {"rate change", spec_of("sgd", kPyTorch), kFallingRate, {0.99, 1.001, 0.99899, 0.996681, 0.9946029}},
      {"decay Keras", spec_of("sgd", kKeras, 0.01), kConstantRate, keras_decay},
      {"decay", spec_of("sgd", kPyTorch, 0.01), kConstantRate, pytorch_decay},
      {"Adam Keras", spec_of("adam", kKeras), kAdamRate, keras_adam},
      {"Adam", spec_of("adam", kPyTorch), kAdamRate, pytorch_adam},
      {"AdamW Keras", spec_of("adamw", kKeras, 0.01), kAdamRate, keras_adamw},
      {"AdamW", spec_of("adamw", kPyTorch, 0.01), kAdamRate, pytorch_adamw},
      // In Keras decay is decoupled, whatever the optimizer's name.
      {"Adam Keras with decay", spec_of("adam", kKeras, 0.01), kAdamRate, keras_adamw},
  };
}

// One parameter of `elements` weights.
std::unique_ptr<Optimizer> optimizer_of(const contract::OptimizerSpec& spec, std::uint64_t elements) {
  std::vector<Segment> segments{{0, elements, spec.weight_decay, true}};
  if (spec.type == "sgd") return std::make_unique<Sgd>(spec, std::move(segments));
  if (spec.type == "lars") return std::make_unique<Lars>(spec, std::move(segments));
  return std::make_unique<Adam>(spec, std::move(segments));
}

TEST(Optimizer, the_twin_in_double_has_every_digit_of_the_table) {
  for (const Golden& golden : goldens()) {
    OptimizerTwin twin(golden.spec, 1);
    std::vector<double> w{1.0};
    for (std::size_t step = 0; step < 5; ++step) {
      twin.step(w, {kGradients[step]}, golden.rates[step]);
      EXPECT_NEAR(w[0], golden.expected[step], 1e-11) << golden.name << " step " << step + 1;
    }
  }
}

TEST(Optimizer, follows_the_golden_values) {
  for (const Golden& golden : goldens()) {
    const auto optimizer = optimizer_of(golden.spec, 1);
    std::vector<float> w = {1.0f}, state(static_cast<std::size_t>(optimizer->slots()));
    for (std::size_t step = 0; step < 5; ++step) {
      // Three samples whose sum is three times the mean, and a clip factor of one half: both are undone by
      // the pass.
      const std::array<float, 1> g = {static_cast<float>(2 * 3 * kGradients[step])};
      optimizer->step(w, g, state, {golden.rates[step], 3.0, 0.5, static_cast<std::int64_t>(step) + 1});
      EXPECT_NEAR(w[0], golden.expected[step], 2e-6 * golden.expected[step])
          << golden.name << " step " << step + 1;
    }
  }
}

// Velocity that holds the rate, corrected in the one step in which the rate falls to a tenth: the row of the form
// whose velocity does not hold it. Where it does not, the correction is none.
TEST(Optimizer, momentum_correction_turns_one_convention_into_the_other) {
  const Five corrected = {0.99, 1.001, 0.99899, 0.996681, 0.9946029};
  for (const OptimizerConvention convention : {kKeras, kPyTorch}) {
    const auto sgd = optimizer_of(spec_of("sgd", convention), 1);
    std::vector<float> w{1.0f}, v(1);
    for (std::size_t step = 0; step < 5; ++step) {
      UpdateArgs update{kFallingRate[step], 1.0, 1.0, static_cast<std::int64_t>(step) + 1};
      if (step > 0) update.momentum_correction = kFallingRate[step] / kFallingRate[step - 1];
      const std::array<float, 1> g = {static_cast<float>(kGradients[step])};
      sgd->step(w, g, v, update);
      EXPECT_NEAR(w[0], corrected[step], 2e-6 * corrected[step]) << "step " << step + 1;
    }
  }
}

TEST(Adam, the_place_of_epsilon_shows_in_the_first_step_of_small_gradients) {
  const struct {
    OptimizerConvention convention;
    double epsilon, gradient, dw, digits;  // digits: half a unit of the last one in the table
  } table[] = {
      {kKeras, 1e-7, 1e-6, -2.402530734e-4, 5e-14}, {kPyTorch, 1e-7, 1e-6, -9.090909e-4, 5e-11},
      {kPyTorch, 1e-8, 1e-6, -9.900990e-4, 5e-11},  {kKeras, 1e-7, 1e-8, -3.152309e-6, 5e-13},
      {kPyTorch, 1e-7, 1e-8, -9.0909e-5, 5e-10},    {kPyTorch, 1e-8, 1e-8, -5.0e-4, 5e-10},
  };
  for (const auto& row : table) {
    contract::OptimizerSpec spec = spec_of("adam", row.convention);
    spec.epsilon = row.epsilon;
    OptimizerTwin twin(spec, 1);
    std::vector<double> exact{0.0};
    twin.step(exact, {row.gradient}, 1e-3);
    EXPECT_NEAR(exact[0], row.dw, row.digits);
    const auto adam = optimizer_of(spec, 1);
    std::vector<float> w{0.0f}, state(2);
    const std::array<float, 1> g = {static_cast<float>(row.gradient)};
    adam->step(w, g, state, {1e-3, 1.0});
    EXPECT_NEAR(w[0], exact[0], 2e-6 * std::abs(exact[0])) << row.gradient << " eps " << row.epsilon;
  }
}

TEST(Adam, epsilon_is_that_of_the_convention_unless_it_is_given) {
  EXPECT_EQ(adam_epsilon(spec_of("adam", kPyTorch)), 1e-8);
  EXPECT_EQ(adam_epsilon(spec_of("adam", kKeras)), 1e-7);
  contract::OptimizerSpec spec = spec_of("adamw", kKeras);
  spec.epsilon = 1e-4;
  EXPECT_EQ(adam_epsilon(spec), 1e-4);
}

// Decay of Adam in PyTorch's convention goes through the moments: it is not AdamW's.
TEST(Adam, decay_is_coupled_in_pytorch_and_decoupled_in_keras) {
  const auto after_one = [](const contract::OptimizerSpec& spec) {
    const auto adam = optimizer_of(spec, 1);
    std::vector<float> w{1.0f}, state(2);
    const std::array<float, 1> g = {0.0f};
    adam->step(w, g, state, {1e-3, 1.0});
    return w[0];
  };
  EXPECT_NEAR(after_one(spec_of("adam", kPyTorch, 0.01)), 0.999, 1e-7);  // g = 0.01: a whole step of lr
  EXPECT_NEAR(after_one(spec_of("adam", kKeras, 0.01)), 0.99999, 1e-7);
  EXPECT_NEAR(after_one(spec_of("adamw", kPyTorch, 0.01)), 0.99999, 1e-7);
}

TEST(Lars, follows_the_golden_values) {
  EXPECT_NEAR(lars_trust(5.0, 0.5, 0.001, 1e-4, 0), 0.009990009990, 5e-13);
  EXPECT_EQ(lars_trust(0.0, 0.5, 0.001, 1e-4, 0), 1.0);
  EXPECT_EQ(lars_trust(5.0, 0.0, 0.001, 1e-4, 0), 1.0);
  const contract::OptimizerSpec spec = spec_of("lars", kPyTorch, 1e-4);
  OptimizerTwin twin(spec, 2);
  std::vector<double> exact{3.0, 4.0};
  twin.step(exact, {0.3, 0.4}, 0.1);
  EXPECT_NEAR(exact[0], 2.9997, 1e-11);
  EXPECT_NEAR(exact[1], 3.9996, 1e-11);
  const auto lars = optimizer_of(spec, 2);
  std::vector<float> w{3.0f, 4.0f}, state(2);
  const std::array<float, 2> g = {0.6f, 0.8f};
  lars->step(w, g, state, {0.1, 2.0});
  EXPECT_NEAR(w[0], 2.9997, 2e-6 * 3);
  EXPECT_NEAR(w[1], 3.9996, 2e-6 * 4);
}

// Gradients 1, 2, 6 on two ranks with 2 and 1 samples: the true mean is 3, means of means say 3.75.
TEST(Optimizer, divides_the_sum_by_the_reduced_count) {
  contract::OptimizerSpec spec;
  spec.momentum = 0;
  Sgd sgd(spec, {{0, 1, 0.0}});
  EXPECT_EQ(sgd.slots(), 0);
  std::array<float, 1> w = {0.0f};
  const std::array<float, 1> g = {(1.0f + 2.0f) + 6.0f};
  sgd.step(w, g, {}, {1.0, 2.0 + 1.0});
  EXPECT_FLOAT_EQ(w[0], -3.0f);
}

TEST(Optimizer, a_step_without_samples_changes_nothing) {
  for (const char* type : {"sgd", "adam", "adamw", "lars"}) {
    const auto optimizer = optimizer_of(spec_of(type, kPyTorch, 0.01), 2);
    std::vector<float> w = {1.0f, 2.0f}, v(2 * static_cast<std::size_t>(optimizer->slots()), 0.5f);
    const std::vector<float> g = {0.0f, 0.0f}, w_before = w, v_before = v;
    optimizer->step(w, g, v, {0.1, 0.0});
    EXPECT_EQ(w, w_before) << type;
    EXPECT_EQ(v, v_before) << type;
  }
}

TEST(ClipScale, is_of_the_mean_gradient_and_only_shortens) {
  EXPECT_EQ(clip_scale(25.0, 1.0, 0.0), 1.0);  // off
  EXPECT_EQ(clip_scale(25.0, 1.0, 5.0), 1.0);  // exactly as long as allowed
  EXPECT_EQ(clip_scale(25.0, 1.0, 2.5), 0.5);
  EXPECT_EQ(clip_scale(25.0, 2.0, 2.5), 1.0);  // the mean of two samples is 2.5 long
  EXPECT_EQ(clip_scale(0.0, 4.0, 1.0), 1.0);
  EXPECT_EQ(clip_scale(25.0, 0.0, 1.0), 1.0);
}

Plan small_plan() {
  Graph graph;
  const TensorId x = add_input(graph, {3}).value();
  const TensorId y = add_linear(graph, "a", x, 5, Bias::kZeros, InitializerKind::kHeNormal).value();
  (void)add_linear(graph, "b", y, 33, Bias::kZeros, InitializerKind::kHeNormal).value();
  return compile_plan(graph, 2, PlanMode::kTraining, {}).value();
}

// Every optimizer against the twin, parameter by parameter, over the arenas of a plan: odd sizes, padding,
// 40 steps. The padding is NaN: it must be neither read nor written.
TEST(Optimizer, walks_the_parameters_of_a_plan_as_the_twin_does_and_leaves_the_padding_alone) {
  const Plan plan = small_plan();
  const std::size_t n = plan.common_layout_elements();
  for (const char* type : {"sgd", "adam", "adamw", "lars"}) {
    for (const OptimizerConvention convention : {kPyTorch, kKeras}) {
      contract::OptimizerSpec spec = spec_of(type, convention, 0.05, std::string(type) == "sgd");
      spec.trust_coefficient = 0.5;
      const auto optimizer = make_optimizer(spec, &plan);
      ASSERT_TRUE(optimizer.ok()) << optimizer.error().message;
      const auto slots = static_cast<std::size_t>((*optimizer)->slots());
      std::vector<float> w(n, std::nanf("")), g(n, std::nanf("")), state(slots * n, std::nanf(""));
      std::mt19937 random(7);
      const auto draw = [&] {
        return static_cast<float>(static_cast<double>(random()) / 4294967296.0 - 0.5);
      };
      std::vector<std::vector<double>> exact;
      std::vector<OptimizerTwin> twins;
      for (const PlanParameter& p : plan.parameters) {
        contract::OptimizerSpec own = spec;
        if (!p.decays) own.weight_decay = 0;
        twins.emplace_back(own, static_cast<std::size_t>(p.elements), p.decays);
        exact.emplace_back();
        for (std::uint64_t i = p.offset_elements;
             i < p.offset_elements + static_cast<std::uint64_t>(p.elements); ++i) {
          w[i] = draw();
          exact.back().push_back(w[i]);
          for (std::size_t slot = 0; slot < slots; ++slot) state[slot * n + i] = 0.0f;
        }
      }
      for (std::int64_t step = 1; step <= 40; ++step) {
        for (std::size_t k = 0; k < plan.parameters.size(); ++k) {
          std::vector<double> mean;
          const PlanParameter& p = plan.parameters[k];
          for (std::uint64_t i = p.offset_elements;
               i < p.offset_elements + static_cast<std::uint64_t>(p.elements); ++i) {
            g[i] = draw();
            mean.push_back(static_cast<double>(g[i]) / 4);
          }
          twins[k].step(exact[k], mean, 0.01);
        }
        (*optimizer)->step(w, g, state, {0.01, 4.0, 1.0, step});
      }
      std::size_t values = 0;
      for (std::size_t k = 0; k < plan.parameters.size(); ++k) {
        for (std::size_t i = 0; i < exact[k].size(); ++i, ++values) {
          EXPECT_NEAR(w[plan.parameters[k].offset_elements + i], exact[k][i], 2e-6)
              << type << " " << plan.parameters[k].name << " " << i;
        }
      }
      const auto padding = std::count_if(w.begin(), w.end(), [](float v) { return std::isnan(v); });
      EXPECT_EQ(values + static_cast<std::size_t>(padding), n);
      EXPECT_GT(padding, 0) << "a plan without padding shows nothing";
    }
  }
}

TEST(Optimizer, decays_kernels_and_leaves_biases_alone_unless_the_list_is_cleared) {
  Plan plan = small_plan();
  contract::OptimizerSpec spec;
  spec.weight_decay = 0.5;
  for (const bool cleared : {false, true}) {
    for (PlanParameter& p : plan.parameters) p.decays = p.decays || cleared;
    const auto sgd = make_optimizer(spec, &plan);
    ASSERT_TRUE(sgd.ok());
    const std::size_t n = plan.common_layout_elements();
    std::vector<float> w(n, 1.0f), g(n, 0.0f), v(n, 0.0f);
    (*sgd)->step(w, g, v, {0.1, 1.0});
    for (const PlanParameter& p : plan.parameters) {
      const bool decays = cleared || p.name.find("kernel") != std::string::npos;
      for (std::int64_t i = 0; i < p.elements; ++i) {
        EXPECT_FLOAT_EQ(w[p.offset_elements + static_cast<std::uint64_t>(i)], decays ? 0.95f : 1.0f)
            << p.name;
      }
    }
  }
}

TEST(Segments, hold_every_parameter_once_and_no_padding) {
  const Plan plan = small_plan();
  for (const Segmentation how : {Segmentation::kMerged, Segmentation::kPerParameter}) {
    std::uint64_t at = 0, elements = 0;
    for (const Segment& s : segments_of(&plan, 0.1, how)) {
      EXPECT_GE(s.begin, at);
      EXPECT_GT(s.end, s.begin);
      at = s.end;
      elements += s.end - s.begin;
    }
    EXPECT_EQ(elements, static_cast<std::uint64_t>(plan.parameter_count()));
    EXPECT_LE(at, plan.common_layout_elements());
  }
  EXPECT_EQ(segments_of(&plan, 0.1, Segmentation::kPerParameter).size(), plan.parameters.size());
  EXPECT_TRUE(segments_of(nullptr, 0.1, Segmentation::kMerged).empty());
}

TEST(Segments, neighbours_without_padding_and_with_one_treatment_are_one) {
  Plan plan;
  plan.parameters.resize(3);
  const std::uint64_t offsets[] = {0, 16, 32};
  for (std::size_t i = 0; i < 3; ++i) {
    plan.parameters[i].offset_elements = offsets[i];
    plan.parameters[i].elements = 16;
    plan.parameters[i].decays = i < 2;
  }
  EXPECT_EQ(segments_of(&plan, 0.1, Segmentation::kMerged).size(), 2u);
  EXPECT_EQ(segments_of(&plan, 0.0, Segmentation::kMerged).size(), 1u);
  EXPECT_EQ(segments_of(&plan, 0.0, Segmentation::kPerParameter).size(), 3u);
}

TEST(MakeOptimizer, refuses_by_name_what_it_does_not_know) {
  contract::OptimizerSpec spec;
  spec.type = "lamb";
  const auto refused = make_optimizer(spec, nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, base::ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().message.find("lamb"), std::string::npos);
}

TEST(MakeOptimizer, refuses_numbers_that_cannot_train_and_names_the_member) {
  const auto message = [](const char* type, auto change) {
    contract::OptimizerSpec spec;
    spec.type = type;
    change(spec);
    const auto refused = make_optimizer(spec, nullptr);
    EXPECT_FALSE(refused.ok());
    if (refused.ok()) return std::string();
    EXPECT_EQ(refused.error().code, base::ErrorCode::kInvalidInput);
    return refused.error().message;
  };
  using Spec = contract::OptimizerSpec;
  EXPECT_NE(message("sgd", [](Spec& s) { s.momentum = 1.0; }).find("momentum is 1.0"), std::string::npos);
  EXPECT_NE(message("lars", [](Spec& s) { s.momentum = -0.1; }).find("momentum"), std::string::npos);
  EXPECT_NE(message("adam", [](Spec& s) { s.beta1 = 1.0; }).find("beta1"), std::string::npos);
  EXPECT_NE(message("adamw", [](Spec& s) { s.beta2 = std::nan(""); }).find("beta2"), std::string::npos);
  EXPECT_NE(message("adam", [](Spec& s) { s.epsilon = 0.0; }).find("epsilon"), std::string::npos);
  EXPECT_NE(message("sgd", [](Spec& s) { s.weight_decay = -1.0; }).find("weightDecay"), std::string::npos);
}

TEST(MakeOptimizer, says_how_much_state_it_needs_before_there_is_a_plan) {
  const std::pair<const char*, int> table[] = {{"sgd", 1}, {"adam", 2}, {"adamw", 2}, {"lars", 1}};
  for (const auto& [type, slots] : table) {
    contract::OptimizerSpec spec;
    spec.type = type;
    EXPECT_EQ(make_optimizer(spec, nullptr).value()->slots(), slots) << type;
  }
}

}  // namespace
}  // namespace evenkeel::trainer
