#include "trainer/graph/plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "trainer/graph/fusion.h"
#include "trainer/graph/plan_internal.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using plan_internal::align_up;

constexpr auto index(Arena arena) {
  return static_cast<std::size_t>(arena);
}

Arena arena_of(TensorRole role) {
  switch (role) {
    case TensorRole::kInput:
      return Arena::kExternal;
    case TensorRole::kParameter:
      return Arena::kParameters;
    case TensorRole::kParameterGradient:
      return Arena::kGradients;
    case TensorRole::kActivation:
      break;
  }
  return Arena::kActivations;
}

base::Status copy_tensors(const Graph& graph, Plan& plan) {
  for (const Tensor& tensor : graph.tensors) {
    PlanTensor t;
    EVENKEEL_ASSIGN(const std::int64_t elements, element_count(tensor.shape, plan.batch));
    t.name = tensor.name;
    t.shape = tensor.shape;
    std::ranges::replace(t.shape, kBatchDim, plan.batch);
    t.role = tensor.role;
    t.arena = arena_of(tensor.role);
    t.size_bytes = static_cast<std::uint64_t>(elements) * sizeof(float);
    plan.tensors.push_back(std::move(t));
  }
  return {};
}

std::int64_t elements(const Plan& plan, TensorId id) {
  return static_cast<std::int64_t>(plan.tensors[static_cast<std::size_t>(id)].size_bytes / sizeof(float));
}

// Multiply-adds count twice; an exponential counts as one.
std::int64_t flop_of(const Plan& plan, const PlanStep& step) {
  const auto last_dim = [&](TensorId id) { return plan.tensors[static_cast<std::size_t>(id)].shape.back(); };
  switch (step.op) {
    case OpKind::kFlatten:
    case OpKind::kReshapeBackward:
      return 0;
    case OpKind::kLinear:
      return 2 * elements(plan, step.outputs[0]) * last_dim(step.inputs[0]) +
             elements(plan, step.outputs[0]) * (step.fused_relu + (step.inputs.size() > 2));
    case OpKind::kLinearBackwardData:
      return 2 * elements(plan, step.outputs[0]) * last_dim(step.inputs[0]);
    case OpKind::kLinearBackwardWeights:
      return 2 * elements(plan, step.inputs[0]) * last_dim(step.inputs[1]) +
             (step.outputs.size() > 1 ? elements(plan, step.inputs[1]) : 0);
    case OpKind::kRelu:
    case OpKind::kReluBackward:
      return elements(plan, step.outputs[0]);
    case OpKind::kSoftmaxCrossEntropy:
      return 5 * elements(plan, step.inputs[0]);
  }
  return 0;
}

std::int64_t bytes_of(const Plan& plan, const PlanStep& step) {
  if (step.op == OpKind::kFlatten || step.op == OpKind::kReshapeBackward) return 0;
  std::int64_t sum = 0;
  for (const TensorId id : step.inputs) sum += elements(plan, id);
  for (const TensorId id : step.outputs) sum += elements(plan, id);
  return sum * static_cast<std::int64_t>(sizeof(float));
}

void copy_steps(const Graph& graph, Plan& plan) {
  for (const Node& node : graph.nodes) {
    PlanStep step;
    step.op = node.op;
    step.layer = node.layer;
    step.phase = node.phase;
    step.inputs = node.inputs;
    step.outputs = node.outputs;
    step.fused_relu = node.fused_relu;
    step.flop = flop_of(plan, step);
    step.moved_bytes = bytes_of(plan, step);
    plan.flop += step.flop;
    plan.moved_bytes += step.moved_bytes;
    plan.steps.push_back(std::move(step));
  }
  const auto first = std::ranges::find(plan.steps, Phase::kBackward, &PlanStep::phase);
  plan.backward_begin = static_cast<int>(first - plan.steps.begin());
}

// Parameters in the order in which the backward pass completes their gradients.
std::vector<TensorId> completion_order(const Graph& training) {
  std::vector<TensorId> order;
  for (const Node& node : training.nodes) {
    for (const TensorId output : node.outputs) {
      if (training.at(output).role == TensorRole::kParameterGradient)
        order.push_back(training.at(output).parameter);
    }
  }
  return order;
}

// Arenas 1, 3 and 4: one layout for all of them, and the same for training and evaluation plans of every
// batch.
base::Status lay_out_parameters(const Graph& forward, const Graph& training, Plan& plan) {
  const std::vector<TensorId> order = completion_order(training);
  const std::vector<TensorId> parameters = forward.parameters();
  if (order.size() != parameters.size()) {
    return Error{ErrorCode::kInternal, "only " + std::to_string(order.size()) + " of " +
                                           std::to_string(parameters.size()) + " parameters have a gradient"};
  }
  std::vector<std::uint64_t> offset_of(plan.tensors.size(), 0);
  std::uint64_t bytes = 0;
  for (const TensorId id : order) {
    offset_of[static_cast<std::size_t>(id)] = bytes;
    bytes += align_up(plan.tensors[static_cast<std::size_t>(id)].size_bytes);
  }
  for (const TensorId id : parameters) {
    const Tensor& tensor = forward.at(id);
    PlanTensor& t = plan.tensors[static_cast<std::size_t>(id)];
    t.offset_bytes = offset_of[static_cast<std::size_t>(id)];
    PlanParameter p;
    p.name = tensor.name;
    p.shape = tensor.shape;
    p.tensor = id;
    p.offset_elements = t.offset_bytes / sizeof(float);
    p.elements = elements(plan, id);
    p.decays = tensor.decays;
    p.initializer = tensor.initializer;
    p.fan_in = tensor.fan_in;
    p.fan_out = tensor.fan_out;
    plan.parameters.push_back(std::move(p));
  }
  plan.arena_bytes[index(Arena::kParameters)] = bytes;
  plan.arena_bytes[index(Arena::kGradients)] = bytes;
  plan.arena_bytes[index(Arena::kOptimizer)] = bytes * static_cast<std::uint64_t>(plan.optimizer_slots);
  return {};
}

void place_gradients(const Graph& graph, Plan& plan) {
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    if (graph.tensors[i].role != TensorRole::kParameterGradient) continue;
    const auto owner = std::ranges::find(plan.parameters, graph.tensors[i].parameter, &PlanParameter::tensor);
    owner->gradient = static_cast<TensorId>(i);
    plan.tensors[i].offset_bytes = owner->offset_elements * sizeof(float);
  }
}

Result<std::uint64_t> bucket_bytes(double bucket_mib) {
  if (bucket_mib == 0) return kDefaultBucketBytes;
  if (!(bucket_mib > 0 && bucket_mib <= 4096)) {
    return Error{ErrorCode::kInvalidInput,
                 "strategy.bucketMiB is " + std::to_string(bucket_mib) + ", must be 0 to 4096"};
  }
  return static_cast<std::uint64_t>(std::llround(bucket_mib * 1048576.0));
}

}  // namespace

std::int64_t Plan::parameter_count() const {
  return std::accumulate(parameters.begin(), parameters.end(), std::int64_t{0},
                         [](std::int64_t sum, const PlanParameter& p) { return sum + p.elements; });
}

std::uint64_t Plan::total_bytes() const {
  return std::accumulate(arena_bytes.begin(), arena_bytes.end(), std::uint64_t{0});
}

Result<Plan> compile_plan(const Graph& graph, std::int64_t batch, PlanMode mode, const PlanOptions& options) {
  if (batch < 0)
    return Error{ErrorCode::kInvalidInput, "a batch of " + std::to_string(batch) + " samples cannot be"};
  EVENKEEL_ASSIGN(const std::uint64_t bucket, bucket_bytes(options.bucket_mib));
  const Graph forward = fuse_linear_relu(graph);
  EVENKEEL_ASSIGN(const Graph training, differentiate(forward, PlanMode::kTraining));
  EVENKEEL_ASSIGN(const Graph whole, differentiate(forward, mode));
  Plan plan;
  plan.mode = mode;
  plan.batch = batch;
  plan.optimizer_slots = options.optimizer_slots;
  plan.input = whole.input;
  plan.logits = whole.logits;
  EVENKEEL_ASSIGN(plan.input_features, element_count(whole.at(whole.input).shape, 1));
  plan.classes = whole.at(whole.logits).shape[1];
  EVENKEEL_TRY(copy_tensors(whole, plan));
  copy_steps(whole, plan);
  EVENKEEL_TRY(lay_out_parameters(forward, training, plan));
  place_gradients(whole, plan);
  plan.activation_bytes = plan_internal::place_activations(plan);
  plan.arena_bytes[index(Arena::kActivations)] = plan.activation_bytes;
  if (mode == PlanMode::kTraining) plan.buckets = plan_internal::cut_buckets(plan, bucket);
  return plan;
}

base::Status check_memory(const Plan& plan, std::uint64_t other_bytes, std::uint64_t limit_bytes,
                          const std::string& limit_source) {
  const std::uint64_t needed = plan.total_bytes() + other_bytes;
  if (limit_bytes == 0 || needed <= limit_bytes) return {};
  const auto mib = [](std::uint64_t bytes) { return std::to_string((bytes + 1048575) / 1048576) + " MiB"; };
  return Error{ErrorCode::kInvalidInput,
               "out of memory before the start: the plan for a local batch of " + std::to_string(plan.batch) +
                   " needs " + mib(needed) + " (parameters " + mib(plan.arena_bytes[0]) + ", gradients " +
                   mib(plan.arena_bytes[2]) + ", optimizer " + mib(plan.arena_bytes[3]) +
                   ", activations and workspace " + mib(plan.arena_bytes[4]) + ", data and the rest " +
                   mib(other_bytes) + "), but the limit (" + limit_source + ") is " + mib(limit_bytes) +
                   ": make the batch or the model smaller, or the limit larger"};
}

}  // namespace evenkeel::trainer
