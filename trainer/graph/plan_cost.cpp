// What a step of a plan costs: arithmetic and memory traffic. Multiply-adds count twice; an exponential
// counts as one.
#include <algorithm>

#include "trainer/graph/plan_internal.h"

namespace evenkeel::trainer::plan_internal {
namespace {

std::int64_t elements(const Plan& plan, TensorId id) {
  return static_cast<std::int64_t>(plan.tensors[static_cast<std::size_t>(id)].size_bytes / sizeof(float));
}

// Of a convolution's three products: each output point meets the whole kernel of its group once.
std::int64_t convolution_flop(const Plan& plan, TensorId y, TensorId kernel) {
  const std::int64_t filters = plan.tensors[static_cast<std::size_t>(kernel)].shape.back();
  return 2 * elements(plan, y) * (elements(plan, kernel) / filters);
}

}  // namespace

bool is_view(OpKind op) {
  return op == OpKind::kFlatten || op == OpKind::kReshape || op == OpKind::kReshapeBackward;
}

std::int64_t flop_of(const Plan& plan, const PlanStep& step) {
  const auto last_dim = [&](TensorId id) { return plan.tensors[static_cast<std::size_t>(id)].shape.back(); };
  const auto in = [&](std::size_t i) { return elements(plan, step.inputs[i]); };
  const auto out = [&](std::size_t i) { return elements(plan, step.outputs[i]); };
  const OpAttributes& a = step.attributes;
  switch (step.op) {
    case OpKind::kFlatten:
    case OpKind::kReshape:
    case OpKind::kReshapeBackward:
    case OpKind::kShortcut:
    case OpKind::kShortcutBackward:
      return 0;
    case OpKind::kLinear:
      return 2 * out(0) * last_dim(step.inputs[0]) + out(0) * (a.relu + (step.inputs.size() > 2));
    case OpKind::kConv2d:
      return convolution_flop(plan, step.outputs[0], step.inputs[1]) +
             out(0) * (a.relu + (step.inputs.size() > 2));
    case OpKind::kLinearBackwardData:
      return 2 * out(0) * last_dim(step.inputs[0]);
    case OpKind::kConv2dBackwardData:
      return convolution_flop(plan, step.inputs[0], step.inputs[1]);
    case OpKind::kLinearBackwardWeights:
      return 2 * in(0) * last_dim(step.inputs[1]) + (step.outputs.size() > 1 ? in(1) : 0);
    case OpKind::kConv2dBackwardWeights:
      return convolution_flop(plan, step.inputs[1], step.outputs[0]) + (step.outputs.size() > 1 ? in(1) : 0);
    case OpKind::kRelu:
    case OpKind::kReluBackward:
    case OpKind::kAdd:
      return out(0) * (1 + a.relu);
    case OpKind::kMaxPool:
    case OpKind::kAvgPool:
      return out(0) * a.window.height * a.window.width;
    case OpKind::kMaxPoolBackward:
      return in(1);
    case OpKind::kAvgPoolBackward:
      return in(0) * a.window.height * a.window.width;
    case OpKind::kGlobalAvgPool:
      return in(0);
    case OpKind::kGlobalAvgPoolBackward:
    case OpKind::kDropout:
    case OpKind::kDropoutBackward:
      return out(0);
    case OpKind::kBatchNorm:
      return (6 + a.relu + a.residual) * out(0);
    case OpKind::kBatchNormInference:
      return (2 + a.relu + a.residual) * out(0);
    case OpKind::kBatchNormBackward:
      return (9 + a.relu) * out(0);
    case OpKind::kSoftmaxCrossEntropy:
      return 5 * in(0);
  }
  return 0;
}

std::int64_t bytes_of(const Plan& plan, const PlanStep& step) {
  if (is_view(step.op)) return 0;
  std::int64_t sum = 0;
  for (const TensorId id : step.inputs) sum += elements(plan, id);
  for (const TensorId id : step.outputs) sum += elements(plan, id);
  return sum * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace evenkeel::trainer::plan_internal
