#include "trainer/backend/cpu/reference.h"

#include <algorithm>
#include <cmath>

namespace evenkeel::trainer {
namespace {

using Values = std::vector<double>;

class Interpreter {
 public:
  Interpreter(const Plan& plan, std::span<const std::int32_t> labels) : plan_(plan), labels_(labels) {
    for (const PlanTensor& t : plan.tensors) result_.tensors.emplace_back(t.size_bytes / sizeof(float), 0.0);
  }

  Values& at(TensorId id) { return result_.tensors[static_cast<std::size_t>(id)]; }
  ReferenceResult take() { return std::move(result_); }

  void run(const PlanStep& step) {
    switch (step.op) {
      case OpKind::kFlatten:
      case OpKind::kReshapeBackward:
        at(step.outputs[0]) = at(step.inputs[0]);
        return;
      case OpKind::kLinear:
        return linear(step);
      case OpKind::kRelu:
        return relu(at(step.inputs[0]), at(step.outputs[0]));
      case OpKind::kReluBackward:
        return relu_backward(step);
      case OpKind::kLinearBackwardData:
        return backward_data(step);
      case OpKind::kLinearBackwardWeights:
        return backward_weights(step);
      case OpKind::kSoftmaxCrossEntropy:
        return loss(step);
    }
  }

 private:
  std::size_t width(TensorId id) const {
    return static_cast<std::size_t>(plan_.tensors[static_cast<std::size_t>(id)].shape.back());
  }
  std::size_t batch() const { return static_cast<std::size_t>(plan_.batch); }

  static void relu(const Values& x, Values& y) {
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = std::max(0.0, x[i]);
  }

  void linear(const PlanStep& step) {
    const std::size_t in = width(step.inputs[0]), units = width(step.outputs[0]);
    Values& y = at(step.outputs[0]);
    for (std::size_t n = 0; n < batch(); ++n) {
      for (std::size_t u = 0; u < units; ++u) {
        double sum = step.inputs.size() > 2 ? at(step.inputs[2])[u] : 0.0;
        for (std::size_t i = 0; i < in; ++i)
          sum += at(step.inputs[0])[n * in + i] * at(step.inputs[1])[i * units + u];
        y[n * units + u] = step.fused_relu ? std::max(0.0, sum) : sum;
      }
    }
  }

  void relu_backward(const PlanStep& step) {
    const Values& y = at(step.inputs[0]);
    for (std::size_t i = 0; i < y.size(); ++i)
      at(step.outputs[0])[i] = y[i] > 0 ? at(step.inputs[1])[i] : 0.0;
  }

  void backward_data(const PlanStep& step) {
    const std::size_t units = width(step.inputs[0]), in = width(step.outputs[0]);
    for (std::size_t n = 0; n < batch(); ++n) {
      for (std::size_t i = 0; i < in; ++i) {
        double sum = 0;
        for (std::size_t u = 0; u < units; ++u)
          sum += at(step.inputs[0])[n * units + u] * at(step.inputs[1])[i * units + u];
        at(step.outputs[0])[n * in + i] = sum;
      }
    }
  }

  void backward_weights(const PlanStep& step) {
    const std::size_t in = width(step.inputs[0]), units = width(step.inputs[1]);
    for (std::size_t n = 0; n < batch(); ++n) {
      for (std::size_t u = 0; u < units; ++u) {
        const double dy = at(step.inputs[1])[n * units + u];
        for (std::size_t i = 0; i < in; ++i)
          at(step.outputs[0])[i * units + u] += at(step.inputs[0])[n * in + i] * dy;
        if (step.outputs.size() > 1) at(step.outputs[1])[u] += dy;
      }
    }
  }

  void loss(const PlanStep& step) {
    const std::size_t classes = width(step.inputs[0]);
    for (std::size_t n = 0; n < batch(); ++n) {
      if (labels_[n] < 0) continue;
      const auto label = static_cast<std::size_t>(labels_[n]);
      const auto z = std::span<const double>(at(step.inputs[0])).subspan(n * classes, classes);
      const auto best = std::ranges::max_element(z);
      double sum = 0;
      for (const double value : z) sum += std::exp(value - *best);
      result_.sums.loss += std::log(sum) + *best - z[label];
      result_.sums.count += 1;
      result_.sums.correct += static_cast<std::size_t>(best - z.begin()) == label;
      for (std::size_t k = 0; !step.outputs.empty() && k < classes; ++k) {
        at(step.outputs[0])[n * classes + k] = std::exp(z[k] - *best) / sum - (k == label ? 1.0 : 0.0);
      }
    }
  }

  const Plan& plan_;
  std::span<const std::int32_t> labels_;
  ReferenceResult result_;
};

}  // namespace

ReferenceResult run_reference(const Plan& plan, const std::vector<std::vector<double>>& parameters,
                              std::span<const double> features, std::span<const std::int32_t> labels) {
  Interpreter interpreter(plan, labels);
  interpreter.at(plan.input).assign(features.begin(), features.end());
  for (std::size_t i = 0; i < plan.parameters.size(); ++i)
    interpreter.at(plan.parameters[i].tensor) = parameters[i];
  for (const PlanStep& step : plan.steps) interpreter.run(step);
  return interpreter.take();
}

}  // namespace evenkeel::trainer
