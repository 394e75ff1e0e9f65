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

// The input that the step's output may take the place of: which one is a matter of the operator alone.
TensorId reusable_input(const PlanStep& step) {
  switch (step.op) {
    case OpKind::kFlatten:
    case OpKind::kReshapeBackward:
    case OpKind::kRelu:
    case OpKind::kSoftmaxCrossEntropy:
      return step.inputs[0];
    case OpKind::kReluBackward:
      return step.inputs[1];
    default:
      return kNoTensor;
  }
}

bool is_view(OpKind op) {
  return op == OpKind::kFlatten || op == OpKind::kReshapeBackward;
}

TensorId root_of(const Plan& plan, TensorId id) {
  while (plan.tensors[static_cast<std::size_t>(id)].shares_with != kNoTensor) {
    id = plan.tensors[static_cast<std::size_t>(id)].shares_with;
  }
  return id;
}

// Views always share; in-place operators only where nobody reads the old content later, and never in the
// caller's memory.
void share(Plan& plan) {
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const PlanStep& step = plan.steps[s];
    const TensorId input = reusable_input(step);
    if (input == kNoTensor || step.outputs.empty()) continue;
    PlanTensor& root = tensor_of(plan, root_of(plan, input));
    PlanTensor& output = tensor_of(plan, step.outputs[0]);
    const bool dead_after = root.last_step <= static_cast<int>(s) && root.arena == Arena::kActivations;
    if (!is_view(step.op) && !dead_after) continue;
    output.shares_with = input;
    output.arena = root.arena;
    root.last_step = std::max(root.last_step, output.last_step);
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

std::uint64_t place_activations(Plan& plan) {
  find_lifetimes(plan);
  share(plan);
  std::vector<Block> placed;
  std::uint64_t total = 0;
  for (Block block : blocks_to_place(plan)) {
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
