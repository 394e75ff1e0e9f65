// Offsets of arena 5: greedy by size, best fit. Two tensors may lie on the same bytes when no step needs
// both.
#include <algorithm>

#include "trainer/graph/plan_internal.h"

namespace evenkeel::trainer::plan_internal {
namespace {

struct Block {
  TensorId tensor = kNoTensor;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  int first_step = 0;
  int last_step = 0;

  bool meets(const Block& other) const {
    return first_step <= other.last_step && other.first_step <= last_step;
  }
};

PlanTensor& tensor_of(Plan& plan, TensorId id) {
  return plan.tensors[static_cast<std::size_t>(id)];
}

void find_lifetimes(Plan& plan) {
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const int step = static_cast<int>(s);
    for (const TensorId id : plan.steps[s].outputs) {
      if (tensor_of(plan, id).first_step < 0) tensor_of(plan, id).first_step = step;
      tensor_of(plan, id).last_step = step;
    }
    for (const TensorId id : plan.steps[s].inputs) tensor_of(plan, id).last_step = step;
  }
}

// Inputs whose place an output may take, best first: a matter of the operator alone. Each of them reads and
// writes element by element, or has read everything before it writes.
std::vector<TensorId> reusable_inputs(const PlanStep& step, std::size_t output) {
  switch (step.op) {
    case OpKind::kFlatten:
    case OpKind::kReshape:
    case OpKind::kReshapeBackward:
    case OpKind::kRelu:
    case OpKind::kDropout:
    case OpKind::kDropoutBackward:
    case OpKind::kBatchNormInference:
    case OpKind::kSoftmaxCrossEntropy:
      return {step.inputs[0]};
    case OpKind::kAdd:
      return {step.inputs[0], step.inputs[1]};
    case OpKind::kReluBackward:
      return {step.inputs[1]};
    case OpKind::kBatchNormBackward:
      // The masked gradient (output 3) is written first, over dy; dx then over x.
      if (output == 3) return {step.inputs[4]};
      return output == 0 ? std::vector<TensorId>{step.inputs[0]} : std::vector<TensorId>{};
    default:
      return {};
  }
}

TensorId root_of(const Plan& plan, TensorId id) {
  while (plan.tensors[static_cast<std::size_t>(id)].shares_with != kNoTensor) {
    id = plan.tensors[static_cast<std::size_t>(id)].shares_with;
  }
  return id;
}

// Views always share; in-place operators only where nobody reads the old content later, and never in the
// caller's memory. `taken`: roots that another output of the same step has taken already.
void share_output(Plan& plan, std::size_t s, std::size_t index, bool views_only,
                  std::vector<TensorId>& taken) {
  const PlanStep& step = plan.steps[s];
  PlanTensor& output = tensor_of(plan, step.outputs[index]);
  if (output.arena != Arena::kActivations) return;
  for (const TensorId input : reusable_inputs(step, index)) {
    const TensorId root_id = root_of(plan, input);
    PlanTensor& root = tensor_of(plan, root_id);
    const bool dead_after = root.last_step <= static_cast<int>(s) && root.arena == Arena::kActivations;
    if (std::ranges::find(taken, root_id) != taken.end()) continue;
    if (!is_view(step.op) && (views_only || !dead_after || root.size_bytes != output.size_bytes)) continue;
    taken.push_back(root_id);
    output.shares_with = input;
    output.arena = root.arena;
    root.last_step = std::max(root.last_step, output.last_step);
    return;
  }
}

void share(Plan& plan, bool views_only) {
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    std::vector<TensorId> taken;
    for (std::size_t index = 0; index < plan.steps[s].outputs.size(); ++index)
      share_output(plan, s, index, views_only, taken);
  }
}

std::vector<Block> blocks_to_place(const Plan& plan) {
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const PlanTensor& t = plan.tensors[i];
    if (t.arena != Arena::kActivations || t.shares_with != kNoTensor || t.first_step < 0 || t.size_bytes == 0)
      continue;
    blocks.push_back({static_cast<TensorId>(i), 0, align_up(t.size_bytes), t.first_step, t.last_step});
  }
  std::ranges::stable_sort(blocks, std::ranges::greater{}, &Block::size);
  return blocks;
}

// The smallest gap between the blocks that are alive at the same time; else behind the last of them.
std::uint64_t best_offset(const std::vector<Block>& placed, const Block& block) {
  std::uint64_t best = 0;
  std::uint64_t best_gap = ~std::uint64_t{0};
  std::uint64_t end = 0;
  for (const Block& other : placed) {  // sorted by offset
    if (!block.meets(other)) continue;
    if (other.offset >= end + block.size && other.offset - end < best_gap) {
      best = end;
      best_gap = other.offset - end;
    }
    end = std::max(end, other.offset + other.size);
  }
  return best_gap == ~std::uint64_t{0} ? end : best;
}

}  // namespace

std::uint64_t place_activations(Plan& plan, bool keep_all) {
  find_lifetimes(plan);
  share(plan, keep_all);
  std::vector<Block> placed;
  std::uint64_t total = 0;
  for (Block block : blocks_to_place(plan)) {
    if (keep_all) block.last_step = static_cast<int>(plan.steps.size());
    block.offset = best_offset(placed, block);
    total = std::max(total, block.offset + block.size);
    tensor_of(plan, block.tensor).offset_bytes = block.offset;
    placed.insert(std::ranges::upper_bound(placed, block.offset, {}, &Block::offset), block);
  }
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    PlanTensor& t = plan.tensors[i];
    if (t.shares_with != kNoTensor)
      t.offset_bytes = tensor_of(plan, root_of(plan, static_cast<TensorId>(i))).offset_bytes;
  }
  return total;
}

}  // namespace evenkeel::trainer::plan_internal
