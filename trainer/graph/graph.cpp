#include "trainer/graph/graph.h"

#include <algorithm>
#include <array>

namespace evenkeel::trainer {

using base::Error;
using base::ErrorCode;
using base::Result;

std::string to_text(const Shape& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += shape[i] == kBatchDim ? "N" : shape[i] == kGroupDim ? "G" : std::to_string(shape[i]);
  }
  return text + ")";
}

Result<std::int64_t> element_count(const Shape& shape, std::int64_t batch, std::int64_t groups) {
  constexpr std::int64_t kMax = std::int64_t{1} << 62;
  std::int64_t count = 1;
  for (const std::int64_t dim : shape) {
    const std::int64_t size = dim == kBatchDim ? batch : dim == kGroupDim ? groups : dim;
    if (__builtin_mul_overflow(count, size, &count) || count > kMax) {
      return Error{ErrorCode::kInvalidInput, "a tensor of shape " + to_text(shape) + " with N = " +
                                                 std::to_string(batch) + " is beyond what can be counted"};
    }
  }
  return count;
}

const char* op_name(OpKind op) {
  static constexpr std::array<const char*, kOpKindCount> kNames = {"Flatten",
                                                                   "Reshape",
                                                                   "Linear",
                                                                   "Conv2d",
                                                                   "Relu",
                                                                   "Add",
                                                                   "MaxPool",
                                                                   "AvgPool",
                                                                   "GlobalAvgPool",
                                                                   "Dropout",
                                                                   "Shortcut",
                                                                   "BatchNorm",
                                                                   "BatchNormInference",
                                                                   "SoftmaxCrossEntropy",
                                                                   "ReluBackward",
                                                                   "LinearBackwardData",
                                                                   "LinearBackwardWeights",
                                                                   "Conv2dBackwardData",
                                                                   "Conv2dBackwardWeights",
                                                                   "ReshapeBackward",
                                                                   "MaxPoolBackward",
                                                                   "AvgPoolBackward",
                                                                   "GlobalAvgPoolBackward",
                                                                   "DropoutBackward",
                                                                   "ShortcutBackward",
                                                                   "BatchNormBackward"};
  return kNames[static_cast<std::size_t>(op)];
}

TensorId Graph::add_tensor(Tensor tensor) {
  tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(tensors.size()) - 1;
}

std::vector<TensorId> Graph::with_role(TensorRole role) const {
  std::vector<TensorId> ids;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].role == role) ids.push_back(static_cast<TensorId>(i));
  }
  return ids;
}

std::int64_t Graph::parameter_count() const {
  std::int64_t count = 0;
  for (const TensorId id : parameters()) count += element_count(at(id).shape, 1).value();
  return count;
}

int Graph::readers_of(TensorId tensor) const {
  int readers = 0;
  for (const Node& node : nodes) readers += static_cast<int>(std::ranges::count(node.inputs, tensor));
  return readers;
}

std::string to_text(const Graph& graph) {
  const auto list = [&](const std::vector<TensorId>& ids) {
    std::string text;
    for (const TensorId id : ids)
      text += (text.empty() ? "" : ", ") + graph.at(id).name + " " + to_text(graph.at(id).shape);
    return text;
  };
  std::string text;
  for (const Node& node : graph.nodes) {
    text += std::string(node.phase == Phase::kForward ? "forward  " : "backward ") + op_name(node.op) +
            (node.attributes.residual ? "+Add" : "") + (node.attributes.relu ? "+Relu" : "") + " " +
            node.layer + ": " + list(node.inputs) + " -> " + list(node.outputs) + "\n";
  }
  return text;
}

}  // namespace evenkeel::trainer
