#include "trainer/graph/autodiff.h"

#include <algorithm>
#include <map>

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

// Which gradient tensors exist already, by the tensor they are of.
using Gradients = std::map<TensorId, TensorId>;

// Does anything before this tensor learn? Gradients of the input, and of layers before the first parameter,
// are not computed.
std::vector<bool> needs_gradient(const Graph& graph) {
  std::vector<bool> needs(graph.tensors.size(), false);
  for (const TensorId parameter : graph.parameters()) needs[static_cast<std::size_t>(parameter)] = true;
  for (const Node& node : graph.nodes) {
    const bool any =
        std::ranges::any_of(node.inputs, [&](TensorId t) { return needs[static_cast<std::size_t>(t)]; });
    for (const TensorId output : node.outputs) needs[static_cast<std::size_t>(output)] = any;
  }
  return needs;
}

class Differentiator {
 public:
  explicit Differentiator(Graph graph) : graph_(std::move(graph)), needs_(needs_gradient(graph_)) {}

  Result<Graph> run() {
    const std::size_t forward_nodes = graph_.nodes.size();
    seed();
    for (std::size_t i = forward_nodes; i-- > 0;) {
      const Node node = graph_.nodes[i];  // a copy: emitting grows the list
      const auto found = gradients_.find(node.outputs[0]);
      if (found == gradients_.end()) continue;  // nothing after it reaches the loss
      EVENKEEL_TRY(emit_backward(node, found->second));
    }
    return std::move(graph_);
  }

 private:
  bool needs(TensorId tensor) const { return needs_[static_cast<std::size_t>(tensor)]; }

  // The loss makes the gradient of the logits itself: softmax - onehot, of the sum over samples.
  void seed() {
    Node loss;
    loss.op = OpKind::kSoftmaxCrossEntropy;
    loss.layer = "loss";
    loss.inputs = {graph_.logits};
    loss.outputs = {new_gradient(graph_.logits)};
    graph_.nodes.push_back(std::move(loss));
  }

  TensorId new_gradient(TensorId of) {
    Tensor gradient;
    gradient.name = graph_.at(of).name + ":grad";
    gradient.shape = graph_.at(of).shape;
    if (graph_.at(of).role == TensorRole::kParameter) {
      gradient.role = TensorRole::kParameterGradient;
      gradient.parameter = of;
    }
    const TensorId id = graph_.add_tensor(std::move(gradient));
    gradients_[of] = id;
    return id;
  }

  void emit(OpKind op, const std::string& layer, std::vector<TensorId> inputs,
            std::vector<TensorId> outputs) {
    Node node;
    node.op = op;
    node.layer = layer;
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    node.phase = Phase::kBackward;
    graph_.nodes.push_back(std::move(node));
  }

  base::Status emit_backward(const Node& node, TensorId dy) {
    for (const TensorId input : node.inputs) {
      // Two readers of one tensor: their gradients would have to be added, and no operator does that yet.
      if (gradients_.contains(input)) {
        return Error{ErrorCode::kUnsupported,
                     "model layer " + node.layer + ": its input " + graph_.at(input).name + " " +
                         to_text(graph_.at(input).shape) +
                         " is read by another layer too; branches are not supported"};
      }
    }
    switch (node.op) {
      case OpKind::kFlatten:
        emit_unary(OpKind::kReshapeBackward, node, {dy});
        return {};
      case OpKind::kRelu:
        emit_unary(OpKind::kReluBackward, node, {node.outputs[0], dy});
        return {};
      case OpKind::kLinear:
        emit_linear(node, dy);
        return {};
      default:
        break;
    }
    return Error{ErrorCode::kInternal, std::string("no backward for operator ") + op_name(node.op)};
  }

  void emit_unary(OpKind op, const Node& node, std::vector<TensorId> inputs) {
    const TensorId x = node.inputs[0];
    if (needs(x)) emit(op, node.layer, std::move(inputs), {new_gradient(x)});
  }

  // The weights first: their gradient can travel while the rest of backward runs.
  void emit_linear(const Node& node, TensorId dy) {
    const TensorId x = node.inputs[0];
    if (node.fused_relu) {
      Tensor masked;
      masked.name = node.layer + ".pre:grad";
      masked.shape = graph_.at(dy).shape;
      const TensorId before_relu = graph_.add_tensor(std::move(masked));
      emit(OpKind::kReluBackward, node.layer, {node.outputs[0], dy}, {before_relu});
      dy = before_relu;
    }
    std::vector<TensorId> weights;
    for (std::size_t i = 1; i < node.inputs.size(); ++i) weights.push_back(new_gradient(node.inputs[i]));
    emit(OpKind::kLinearBackwardWeights, node.layer, {x, dy}, std::move(weights));
    if (needs(x)) emit(OpKind::kLinearBackwardData, node.layer, {dy, node.inputs[1]}, {new_gradient(x)});
  }

  Graph graph_;
  std::vector<bool> needs_;
  Gradients gradients_;
};

}  // namespace

Result<Graph> differentiate(Graph graph, PlanMode mode) {
  if (graph.logits == kNoTensor || graph.at(graph.logits).shape.size() != 2) {
    const std::string shape = graph.logits == kNoTensor ? "nothing" : to_text(graph.at(graph.logits).shape);
    return Error{ErrorCode::kInvalidInput,
                 "the model ends in " + shape + ", the loss needs (N, classes): end with a dense layer"};
  }
  if (mode == PlanMode::kTraining) return Differentiator(std::move(graph)).run();
  Node loss;
  loss.op = OpKind::kSoftmaxCrossEntropy;
  loss.layer = "loss";
  loss.inputs = {graph.logits};
  graph.nodes.push_back(std::move(loss));
  return graph;
}

}  // namespace evenkeel::trainer
