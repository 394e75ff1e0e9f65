// Problems for tests of the back end: values that fp32 holds exactly, and the comparison of the fast
// operators with their naive twins. For tests alone.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "trainer/backend/cpu/engine.h"
#include "trainer/backend/cpu/reference.h"

namespace evenkeel::trainer::testing {

struct Problem {
  std::vector<double> features;
  std::vector<float> features_f;
  std::vector<std::int32_t> labels;
  std::vector<std::int64_t> ids;
  std::vector<std::vector<double>> parameters;

  StepInput input() const {
    return {.features = features_f, .labels = labels, .ids = ids, .epoch = 3, .seed = 7};
  }
  ReferenceInput reference_input() const { return {features, labels, ids, 3, 7}; }
};

inline Problem problem_for(const Plan& plan, unsigned seed) {
  std::mt19937 random(seed);
  const auto value = [&] { return static_cast<double>(static_cast<int>(random() % 2001) - 1000) / 1024.0; };
  Problem p;
  for (std::int64_t i = 0; i < plan.batch * plan.input_features; ++i) p.features.push_back(value());
  for (std::int64_t i = 0; i < plan.batch; ++i) {
    p.labels.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(plan.classes)));
    p.ids.push_back(static_cast<std::int64_t>(random() % 100000));
  }
  for (const PlanParameter& parameter : plan.parameters) {
    auto& values = p.parameters.emplace_back();
    for (std::int64_t i = 0; i < parameter.elements; ++i) values.push_back(value());
  }
  p.features_f.assign(p.features.begin(), p.features.end());
  return p;
}

inline void load(Engine& engine, const Problem& p) {
  for (std::size_t i = 0; i < p.parameters.size(); ++i) {
    const auto offset = engine.plan().parameters[i].offset_elements;
    for (std::size_t k = 0; k < p.parameters[i].size(); ++k) {
      engine.parameters()[offset + k] = static_cast<float>(p.parameters[i][k]);
    }
  }
}

inline double largest(const std::vector<double>& values) {
  double result = 0;
  for (const double v : values) result = std::max(result, std::abs(v));
  return result;
}

// Tolerance: relative to the largest of the tensor, and to a tenth of `scale`, the size of the terms: where
// they cancel (the gradient of a bias before a batch normalisation is zero), what is left has their rounding.
inline void expect_close(std::span<const float> have, const std::vector<double>& want, double relative,
                         double scale, const std::string& what) {
  ASSERT_EQ(have.size(), want.size()) << what;
  const double tolerance = relative * (0.1 * scale + largest(want));
  for (std::size_t k = 0; k < want.size(); ++k)
    ASSERT_NEAR(static_cast<double>(have[k]), want[k], tolerance) << what << " at " << k;
}

// One forward and backward pass of the training plan beside its twin: loss, gradients, statistic sums.
inline void expect_agrees_with_twin(const Graph& graph, std::int64_t batch, const EngineOptions& options,
                                    double relative = 2e-5) {
  auto engine = Engine::create(graph, batch, options);
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const Plan& plan = (*engine)->plan();
  const Problem p = problem_for(plan, static_cast<unsigned>(batch));
  load(**engine, p);
  std::ranges::fill((*engine)->gradient_arena(), 7.0f);  // backward must write, not add
  Executor& executor = **(*engine)->executor(batch, PlanMode::kTraining);
  const LossSums sums = executor.forward(p.input()).value();
  ASSERT_TRUE(executor.backward(nullptr).ok());
  const ReferenceResult expected = run_reference(plan, p.parameters, p.reference_input());
  EXPECT_NEAR(sums.loss, expected.sums.loss, 1e-5 * (1 + std::abs(expected.sums.loss)));
  EXPECT_EQ(sums.count, batch);
  double scale = 0.1;  // softmax - label has the rounding of 1, however small it is
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    if (plan.tensors[i].name.find(":grad") != std::string::npos)
      scale = std::max(scale, largest(expected.tensors[i]));
  }
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const PlanTensor& t = plan.tensors[i];
    if (t.arena != Arena::kGradients) continue;
    const auto have =
        (*engine)->gradient_arena().subspan(t.offset_bytes / sizeof(float), t.size_bytes / sizeof(float));
    expect_close(have, expected.tensors[i], relative, scale, t.name);
  }
}

// Every parameter's gradient of the twin beside the slope of its loss.
inline void expect_twin_agrees_with_finite_differences(const Graph& graph, std::int64_t batch,
                                                       const PlanOptions& options, double tolerance) {
  const Plan plan = compile_plan(graph, batch, PlanMode::kTraining, options).value();
  Problem p = problem_for(plan, 5);
  const ReferenceResult result = run_reference(plan, p.parameters, p.reference_input());
  constexpr double kStep = 1e-6;
  const auto loss = [&] { return run_reference(plan, p.parameters, p.reference_input()).sums.loss; };
  for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
    // At most a dozen of each tensor: the twin is slow.
    const std::size_t stride = std::max<std::size_t>(1, p.parameters[i].size() / 12);
    for (std::size_t k = 0; k < p.parameters[i].size(); k += stride) {
      const double at = p.parameters[i][k];
      p.parameters[i][k] = at + kStep;
      const double above = loss();
      p.parameters[i][k] = at - kStep;
      const double below = loss();
      p.parameters[i][k] = at;
      EXPECT_NEAR(result.tensors[static_cast<std::size_t>(plan.parameters[i].gradient)][k],
                  (above - below) / (2 * kStep), tolerance)
          << plan.parameters[i].name << " at " << k;
    }
  }
}

}  // namespace evenkeel::trainer::testing
