#include "trainer/backend/cpu/executor.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "trainer/backend/cpu/threads.h"

namespace evenkeel::trainer {
namespace {

using base::Result;

// Null: a view, nothing to run.
Result<std::unique_ptr<Operator>> make_operator(const Plan& plan, const PlanStep& step) {
  switch (step.op) {
    case OpKind::kLinear:
    case OpKind::kLinearBackwardData:
    case OpKind::kLinearBackwardWeights:
      return make_linear(plan, step);
    case OpKind::kRelu:
      return make_relu(plan, step);
    case OpKind::kReluBackward:
      return make_relu_backward(plan, step);
    case OpKind::kSoftmaxCrossEntropy:
      return std::unique_ptr<Operator>(make_loss(plan, step));
    case OpKind::kFlatten:
    case OpKind::kReshapeBackward:
      break;
  }
  return std::unique_ptr<Operator>();
}

std::uint64_t align_up(std::uint64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

}  // namespace

Result<std::unique_ptr<CpuExecutor>> CpuExecutor::compile(Plan plan, int threads) {
  // oneDNN chooses kernels and workspace for the thread count that it finds.
  enter_compute(threads);
  std::unique_ptr<CpuExecutor> executor(new CpuExecutor(std::move(plan), threads));
  if (executor->plan_.batch > 0) EVENKEEL_TRY(executor->make_operators());
  return executor;
}

base::Status CpuExecutor::make_operators() {
  for (const PlanStep& step : plan_.steps) {
    EVENKEEL_ASSIGN(auto op, make_operator(plan_, step));
    if (op != nullptr) {
      plan_.workspace_bytes = std::max(plan_.workspace_bytes, align_up(op->workspace_bytes()));
      kernels_.push_back(step.layer + " " + op_name(step.op) + ": " + op->kernel());
    }
    if (step.op == OpKind::kSoftmaxCrossEntropy) loss_ = static_cast<LossOperator*>(op.get());
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

LossSums CpuExecutor::forward(std::span<const float> features, std::span<const std::int32_t> labels) {
  assert(static_cast<std::int64_t>(labels.size()) == plan_.batch);
  assert(static_cast<std::int64_t>(features.size()) == plan_.batch * plan_.input_features);
  if (plan_.batch == 0) return {};
  enter_compute(threads_);
  bind_features(features.data());
  loss_->set_labels(labels);
  for (std::size_t s = 0; s < static_cast<std::size_t>(plan_.backward_begin); ++s) {
    if (operators_[s] != nullptr) operators_[s]->run();
  }
  return loss_->sums();
}

void CpuExecutor::backward(const BucketReady& on_bucket_ready) {
  assert(plan_.mode == PlanMode::kTraining);
  next_bucket_ = 0;
  if (plan_.batch == 0)
    std::memset(gradients_, 0, plan_.arena_bytes[static_cast<std::size_t>(Arena::kGradients)]);
  enter_compute(threads_);
  for (std::size_t s = static_cast<std::size_t>(plan_.backward_begin); s < plan_.steps.size(); ++s) {
    if (plan_.batch > 0 && operators_[s] != nullptr) operators_[s]->run();
    report_buckets(s, on_bucket_ready);
  }
}

void CpuExecutor::report_buckets(std::size_t step, const BucketReady& on_bucket_ready) {
  while (next_bucket_ < plan_.buckets.size() &&
         plan_.buckets[next_bucket_].ready_after_step <= static_cast<int>(step)) {
    if (on_bucket_ready) on_bucket_ready(static_cast<int>(next_bucket_));
    ++next_bucket_;
  }
}

}  // namespace evenkeel::trainer
