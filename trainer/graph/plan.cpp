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

constexpr auto index(Arena arena) {
  return static_cast<std::size_t>(arena);
}

Arena arena_of(TensorRole role) {
  switch (role) {
    case TensorRole::kInput:
      return Arena::kExternal;
    case TensorRole::kParameter:
    case TensorRole::kRunningStatistic:
      return Arena::kParameters;
    case TensorRole::kParameterGradient:
    case TensorRole::kStatisticSums:
      return Arena::kGradients;
    case TensorRole::kActivation:
      break;
  }
  return Arena::kActivations;
}

std::int64_t groups_of(const Plan& plan) {
  return plan.group == 0 ? 0 : (plan.batch + plan.group - 1) / plan.group;
}

base::Status copy_tensors(const Graph& graph, Plan& plan) {
  for (const Tensor& tensor : graph.tensors) {
    PlanTensor t;
    EVENKEEL_ASSIGN(const std::int64_t elements, element_count(tensor.shape, plan.batch, groups_of(plan)));
    t.name = tensor.name;
    t.shape = tensor.shape;
    std::ranges::replace(t.shape, kBatchDim, plan.batch);
    std::ranges::replace(t.shape, kGroupDim, groups_of(plan));
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

void copy_steps(const Graph& graph, Plan& plan) {
  for (const Node& node : graph.nodes) {
    PlanStep step;
    step.op = node.op;
    step.layer = node.layer;
    step.phase = node.phase;
    step.inputs = node.inputs;
    step.outputs = node.outputs;
    step.attributes = node.attributes;
    step.flop = plan_internal::flop_of(plan, step);
    step.moved_bytes = plan_internal::bytes_of(plan, step);
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
  plan.layout_elements = bytes / sizeof(float);
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

// The next free place of an arena, for a tensor that lies behind the common layout.
std::uint64_t append(Plan& plan, Arena arena, std::uint64_t size_bytes) {
  std::uint64_t& end = plan.arena_bytes[index(arena)];
  const std::uint64_t offset = end;
  end += align_up(size_bytes);
  return offset / sizeof(float);
}

// Behind the common layout of arenas 1 and 3, and the same in every plan of the model.
void lay_out_statistics(const Graph& forward, const Graph& whole, Plan& plan) {
  for (const Node& node : forward.nodes) {
    if (node.op != OpKind::kBatchNorm) continue;
    PlanStatistic s;
    s.layer = node.layer;
    s.channels = forward.at(node.inputs[1]).shape[0];
    s.momentum = node.attributes.momentum;
    const auto channels = static_cast<std::uint64_t>(s.channels);
    s.mean_offset_elements = append(plan, Arena::kParameters, channels * sizeof(float));
    s.variance_offset_elements = append(plan, Arena::kParameters, channels * sizeof(float));
    s.sums_offset_elements = append(plan, Arena::kGradients, (2 * channels + 2) * sizeof(float));
    const auto place = [&](TensorId id, std::uint64_t offset_elements) {
      plan.tensors[static_cast<std::size_t>(id)].offset_bytes = offset_elements * sizeof(float);
    };
    place(node.inputs[3], s.mean_offset_elements);
    place(node.inputs[4], s.variance_offset_elements);
    for (const Node& made : whole.nodes) {
      if (made.op == OpKind::kBatchNorm && made.layer == node.layer)
        place(made.outputs[3], s.sums_offset_elements);
    }
    plan.statistics.push_back(std::move(s));
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
  const auto observed = [&options](const char* pass, Graph passed) {
    if (options.on_pass) options.on_pass(pass, passed);
    return passed;
  };
  const Graph summed = observed("fuse_batch_norm_add", fuse_batch_norm_add(observed("model", graph)));
  const Graph forward = observed("fuse_relu", fuse_relu(summed));
  EVENKEEL_ASSIGN(const Graph training, differentiate(forward, PlanMode::kTraining, options.label_smoothing));
  Graph whole = training;
  if (mode == PlanMode::kEvaluation) {
    EVENKEEL_ASSIGN(whole, differentiate(forward, mode));
  }
  if (options.on_pass) options.on_pass("differentiate", whole);
  Plan plan;
  plan.mode = mode;
  plan.batch = batch;
  plan.optimizer_slots = options.optimizer_slots;
  plan.statistics_mode = options.statistics;
  plan.group =
      options.statistics == StatisticsMode::kGhost ? std::max<std::int64_t>(1, options.group) : batch;
  plan.input = whole.input;
  plan.logits = whole.logits;
  EVENKEEL_ASSIGN(plan.input_features, element_count(whole.at(whole.input).shape, 1));
  plan.classes = whole.at(whole.logits).shape[1];
  EVENKEEL_TRY(copy_tensors(whole, plan));
  copy_steps(whole, plan);
  EVENKEEL_TRY(lay_out_parameters(forward, training, plan));
  place_gradients(whole, plan);
  lay_out_statistics(forward, whole, plan);
  plan.activation_bytes = plan_internal::place_activations(plan, options.keep_all);
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
