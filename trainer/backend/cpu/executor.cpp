#include "trainer/backend/cpu/executor.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/trace.h"
#include "trainer/backend/cpu/threads.h"

namespace evenkeel::trainer {
namespace {

using base::Result;

// Null: a view, nothing to run.
OperatorResult make_operator(const Plan& plan, const PlanStep& step) {
  switch (step.op) {
    case OpKind::kLinear:
    case OpKind::kLinearBackwardData:
    case OpKind::kLinearBackwardWeights:
      return make_linear(plan, step);
    case OpKind::kConv2d:
    case OpKind::kConv2dBackwardData:
    case OpKind::kConv2dBackwardWeights:
      return make_convolution(plan, step);
    case OpKind::kRelu:
      return make_relu(plan, step);
    case OpKind::kReluBackward:
      return make_relu_backward(plan, step);
    case OpKind::kAdd:
      return make_add(plan, step);
    case OpKind::kDropout:
    case OpKind::kDropoutBackward:
      return make_dropout(plan, step);
    case OpKind::kShortcut:
      return make_shortcut(plan, step);
    case OpKind::kShortcutBackward:
      return make_shortcut_backward(plan, step);
    case OpKind::kMaxPool:
    case OpKind::kAvgPool:
    case OpKind::kGlobalAvgPool:
    case OpKind::kMaxPoolBackward:
    case OpKind::kAvgPoolBackward:
    case OpKind::kGlobalAvgPoolBackward:
      return make_pool(plan, step);
    case OpKind::kBatchNorm:
    case OpKind::kBatchNormInference:
      return make_batch_norm(plan, step);
    case OpKind::kBatchNormBackward:
      return make_batch_norm_backward(plan, step);
    case OpKind::kSoftmaxCrossEntropy:
      return make_loss(plan, step);
    case OpKind::kFlatten:
    case OpKind::kReshape:
    case OpKind::kReshapeBackward:
      break;
  }
  return std::unique_ptr<Operator>();
}

// A rank without samples has nothing to run, but for the exchange of Sync statistics, which waits for every
// rank.
bool runs_without_samples(const Plan& plan, const PlanStep& step) {
  return plan.statistics_mode == StatisticsMode::kSync && plan.mode == PlanMode::kTraining &&
         (step.op == OpKind::kBatchNorm || step.op == OpKind::kBatchNormBackward);
}

}  // namespace

Result<std::unique_ptr<CpuExecutor>> CpuExecutor::compile(Plan plan, int threads) {
  // oneDNN chooses kernels and workspace for the thread count that it finds.
  enter_compute(threads);
  std::unique_ptr<CpuExecutor> executor(new CpuExecutor(std::move(plan), threads));
  EVENKEEL_TRY(executor->make_operators());
  return executor;
}

base::Status CpuExecutor::make_operators() {
  for (const PlanStep& step : plan_.steps) {
    names_.push_back(step.layer + " " + op_name(step.op));
    if (plan_.batch == 0 && !runs_without_samples(plan_, step)) {
      operators_.push_back(nullptr);
      continue;
    }
    EVENKEEL_ASSIGN(auto op, make_operator(plan_, step));
    if (op != nullptr) {
      plan_.workspace_bytes = std::max(plan_.workspace_bytes, align_up(op->workspace_bytes()));
      kernels_.push_back(step.layer + " " + op_name(step.op) + ": " + op->kernel());
    }
    operators_.push_back(std::move(op));
  }
  plan_.arena_bytes[static_cast<std::size_t>(Arena::kActivations)] =
      plan_.activation_bytes + plan_.workspace_bytes;
  return {};
}

void CpuExecutor::bind(const ArenaStarts& arenas) {
  addresses_.of_tensor.assign(plan_.tensors.size(), nullptr);
  for (std::size_t i = 0; i < plan_.tensors.size(); ++i) {
    const PlanTensor& t = plan_.tensors[i];
    if (t.arena == Arena::kExternal || t.size_bytes == 0) continue;
    std::byte* start = arenas[static_cast<std::size_t>(t.arena)];
    if (start != nullptr) addresses_.of_tensor[i] = reinterpret_cast<float*>(start + t.offset_bytes);
  }
  addresses_.workspace = arenas[static_cast<std::size_t>(Arena::kActivations)] + plan_.activation_bytes;
  gradients_ = arenas[static_cast<std::size_t>(Arena::kGradients)];
  for (const auto& op : operators_) {
    if (op != nullptr) op->bind(addresses_);
  }
}

// The features are used where the caller has them; a prefetching loop has several buffers.
void CpuExecutor::bind_features(const float* features) {
  float* address = const_cast<float*>(features);  // read only: no operator writes into the external arena
  if (addresses_.at(plan_.input) == address) return;
  for (std::size_t i = 0; i < plan_.tensors.size(); ++i) {
    if (plan_.tensors[i].arena == Arena::kExternal) addresses_.of_tensor[i] = address;
  }
  const auto reads_features = [&](const PlanStep& step) {
    return std::ranges::any_of(step.inputs, [&](TensorId id) {
      return plan_.tensors[static_cast<std::size_t>(id)].arena == Arena::kExternal;
    });
  };
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    if (operators_[s] != nullptr && reads_features(plan_.steps[s])) operators_[s]->bind(addresses_);
  }
}

Result<LossSums> CpuExecutor::forward(const StepInput& input) {
  assert(static_cast<std::int64_t>(input.labels.size()) == plan_.batch);
  assert(static_cast<std::int64_t>(input.features.size()) == plan_.batch * plan_.input_features);
  enter_compute(threads_);
  if (plan_.batch > 0) bind_features(input.features.data());
  context_ = {};
  context_.input = input;
  context_.exchange = &exchange_;
  for (std::size_t s = 0; s < static_cast<std::size_t>(plan_.backward_begin); ++s) EVENKEEL_TRY(run_step(s));
  return context_.sums;
}

base::Status CpuExecutor::backward(const BucketReady& on_bucket_ready) {
  assert(plan_.mode == PlanMode::kTraining);
  next_bucket_ = 0;
  if (plan_.batch == 0)
    std::memset(gradients_, 0, plan_.arena_bytes[static_cast<std::size_t>(Arena::kGradients)]);
  enter_compute(threads_);
  for (std::size_t s = static_cast<std::size_t>(plan_.backward_begin); s < plan_.steps.size(); ++s) {
    EVENKEEL_TRY(run_step(s));
    report_buckets(s, on_bucket_ready);
  }
  return {};
}

base::Status CpuExecutor::run_step(std::size_t step) {
  if (operators_[step] == nullptr) return {};
  const base::TraceSpan span("operator", names_[step]);
  operators_[step]->run(context_);
  return context_.failure;
}

std::span<const float> CpuExecutor::tensor(TensorId id) const {
  const float* start = addresses_.at(id);
  return start == nullptr ? std::span<const float>()
                          : std::span<const float>(start, static_cast<std::size_t>(elements_of(plan_, id)));
}

void CpuExecutor::report_buckets(std::size_t step, const BucketReady& on_bucket_ready) {
  while (next_bucket_ < plan_.buckets.size() &&
         plan_.buckets[next_bucket_].ready_after_step <= static_cast<int>(step)) {
    if (on_bucket_ready) on_bucket_ready(static_cast<int>(next_bucket_));
    ++next_bucket_;
  }
}

}  // namespace evenkeel::trainer
