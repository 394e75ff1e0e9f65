#include "trainer/graph/autodiff.h"

#include <algorithm>
#include <map>

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

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

TensorId add_activation(Graph& graph, const std::string& name, Shape shape,
                        TensorRole role = TensorRole::kActivation) {
  Tensor tensor;
  tensor.name = name;
  tensor.shape = std::move(shape);
  tensor.role = role;
  return graph.add_tensor(std::move(tensor));
}

// What the forward operators leave behind for the backward ones.
void prepare_for_training(Graph& graph) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    Node node = graph.nodes[i];
    if (node.op == OpKind::kMaxPool) {
      node.outputs.push_back(add_activation(graph, node.layer + ".index", graph.at(node.outputs[0]).shape));
    }
    if (node.op == OpKind::kBatchNorm) {
      const std::int64_t channels = graph.at(node.inputs[1]).shape[0];
      node.inputs.erase(node.inputs.begin() + 3, node.inputs.begin() + 5);  // the running statistics
      node.outputs.push_back(add_activation(graph, node.layer + ".mean", {kGroupDim, channels}));
      node.outputs.push_back(add_activation(graph, node.layer + ".inverse_deviation", {kGroupDim, channels}));
      node.outputs.push_back(
          add_activation(graph, node.layer + ".sums", {2 * channels + 2}, TensorRole::kStatisticSums));
    }
    graph.nodes[i] = std::move(node);
  }
}

void prepare_for_evaluation(Graph& graph) {
  for (Node& node : graph.nodes) {
    if (node.op == OpKind::kBatchNorm) node.op = OpKind::kBatchNormInference;
    if (node.op == OpKind::kDropout) node.op = OpKind::kReshape;
  }
}

Node loss_node(const Graph& graph) {
  Node loss;
  loss.op = OpKind::kSoftmaxCrossEntropy;
  loss.layer = "loss";
  loss.inputs = {graph.logits};
  return loss;
}

class Differentiator {
 public:
  explicit Differentiator(Graph graph) : graph_(std::move(graph)), needs_(needs_gradient(graph_)) {}

  Result<Graph> run(double label_smoothing) {
    const std::size_t forward_nodes = graph_.nodes.size();
    seed(label_smoothing);
    for (std::size_t i = forward_nodes; i-- > 0;) {
      const Node node = graph_.nodes[i];  // a copy: emitting grows the list
      const TensorId dy = gradient_of(node.outputs[0], node.layer);
      if (dy == kNoTensor) continue;  // nothing after it reaches the loss
      EVENKEEL_TRY(emit_backward(node, dy));
    }
    return std::move(graph_);
  }

 private:
  bool needs(TensorId tensor) const { return needs_[static_cast<std::size_t>(tensor)]; }

  // The loss makes the gradient of the logits itself: softmax - label, of the sum over samples.
  void seed(double label_smoothing) {
    Node loss = loss_node(graph_);
    loss.outputs = {new_gradient(graph_.logits)};
    loss.attributes.label_smoothing = label_smoothing;
    graph_.nodes.push_back(std::move(loss));
  }

  // A tensor for (one reader's part of) the gradient of `of`.
  TensorId new_gradient(TensorId of) {
    Tensor gradient;
    const std::size_t nth = parts_[of].size();
    gradient.name = graph_.at(of).name + ":grad" + (nth == 0 ? "" : "_" + std::to_string(nth + 1));
    gradient.shape = graph_.at(of).shape;
    if (graph_.at(of).role == TensorRole::kParameter) {
      gradient.role = TensorRole::kParameterGradient;
      gradient.parameter = of;
    }
    const TensorId id = graph_.add_tensor(std::move(gradient));
    parts_[of].push_back(id);
    return id;
  }

  // The gradient flows through unchanged.
  void pass_on(TensorId to, TensorId dy) {
    if (needs(to)) parts_[to].push_back(dy);
  }

  // All readers come after the tensor's maker, so by now each has left its part.
  TensorId gradient_of(TensorId tensor, const std::string& layer) {
    const auto found = parts_.find(tensor);
    if (found == parts_.end() || found->second.empty()) return kNoTensor;
    const std::vector<TensorId> parts = found->second;
    TensorId sum = parts[0];
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const TensorId next = add_activation(
          graph_, graph_.at(tensor).name + ":grad_sum" + (i == 1 ? "" : "_" + std::to_string(i)),
          graph_.at(tensor).shape);
      emit(OpKind::kAdd, layer, {sum, parts[i]}, {next}, {});
      sum = next;
    }
    return sum;
  }

  void emit(OpKind op, const std::string& layer, std::vector<TensorId> inputs, std::vector<TensorId> outputs,
            const OpAttributes& attributes) {
    Node node;
    node.op = op;
    node.layer = layer;
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    node.phase = Phase::kBackward;
    node.attributes = attributes;
    node.attributes.relu = false;
    graph_.nodes.push_back(std::move(node));
  }

  base::Status emit_backward(const Node& node, TensorId dy) {
    switch (node.op) {
      case OpKind::kFlatten:
      case OpKind::kReshape:
        return emit_unary(OpKind::kReshapeBackward, node, {dy});
      case OpKind::kRelu:
        return emit_unary(OpKind::kReluBackward, node, {node.outputs[0], dy});
      case OpKind::kMaxPool:
        return emit_unary(OpKind::kMaxPoolBackward, node, {node.outputs[1], dy});
      case OpKind::kAvgPool:
        return emit_unary(OpKind::kAvgPoolBackward, node, {dy});
      case OpKind::kGlobalAvgPool:
        return emit_unary(OpKind::kGlobalAvgPoolBackward, node, {dy});
      case OpKind::kDropout:
        return emit_unary(OpKind::kDropoutBackward, node, {dy});
      case OpKind::kShortcut:
        return emit_unary(OpKind::kShortcutBackward, node, {dy});
      case OpKind::kAdd:
        dy = before_relu(node, dy);
        for (const TensorId input : node.inputs) pass_on(input, dy);
        return {};
      case OpKind::kLinear:
        return emit_weighted(OpKind::kLinearBackwardWeights, OpKind::kLinearBackwardData, node, dy);
      case OpKind::kConv2d:
        return emit_weighted(OpKind::kConv2dBackwardWeights, OpKind::kConv2dBackwardData, node, dy);
      case OpKind::kBatchNorm:
        return emit_batch_norm(node, dy);
      default:
        break;
    }
    return Error{ErrorCode::kInternal, std::string("no backward for operator ") + op_name(node.op)};
  }

  base::Status emit_unary(OpKind op, const Node& node, std::vector<TensorId> inputs) {
    const TensorId x = node.inputs[0];
    if (needs(x)) emit(op, node.layer, std::move(inputs), {new_gradient(x)}, node.attributes);
    return {};
  }

  // dy of what stood before a ReLU that is part of the operator.
  TensorId before_relu(const Node& node, TensorId dy) {
    if (!node.attributes.relu) return dy;
    const TensorId masked = add_activation(graph_, node.layer + ".pre:grad", graph_.at(dy).shape);
    emit(OpKind::kReluBackward, node.layer, {node.outputs[0], dy}, {masked}, {});
    return masked;
  }

  // The weights first: their gradient can travel while the rest of backward runs.
  base::Status emit_weighted(OpKind weights_op, OpKind data_op, const Node& node, TensorId dy) {
    const TensorId x = node.inputs[0];
    dy = before_relu(node, dy);
    std::vector<TensorId> weights;
    for (std::size_t i = 1; i < node.inputs.size(); ++i) weights.push_back(new_gradient(node.inputs[i]));
    emit(weights_op, node.layer, {x, dy}, std::move(weights), node.attributes);
    if (needs(x)) emit(data_op, node.layer, {dy, node.inputs[1]}, {new_gradient(x)}, node.attributes);
    return {};
  }

  // The mask of a ReLU is applied inside; a residual gets the masked gradient too.
  base::Status emit_batch_norm(const Node& node, TensorId dy) {
    std::vector<TensorId> inputs = {node.inputs[0], node.inputs[1], node.outputs[1], node.outputs[2], dy};
    // The gradient of x is computed even where nobody needs it: the two sums cost the same passes.
    std::vector<TensorId> outputs = {new_gradient(node.inputs[0]), new_gradient(node.inputs[1]),
                                     new_gradient(node.inputs[2])};
    OpAttributes attributes = node.attributes;
    attributes.residual = false;
    if (node.attributes.relu) inputs.push_back(node.outputs[0]);
    if (node.attributes.residual) {
      const TensorId residual = node.inputs.back();
      if (!node.attributes.relu) {
        pass_on(residual, dy);
      } else {
        attributes.residual = true;
        outputs.push_back(needs(residual)
                              ? new_gradient(residual)
                              : add_activation(graph_, node.layer + ".masked:grad", graph_.at(dy).shape));
      }
    }
    emit(OpKind::kBatchNormBackward, node.layer, std::move(inputs), std::move(outputs), attributes);
    graph_.nodes.back().attributes.relu = node.attributes.relu;
    return {};
  }

  Graph graph_;
  std::vector<bool> needs_;
  std::map<TensorId, std::vector<TensorId>> parts_;  // of each tensor's gradient, one from each reader
};

}  // namespace

Result<Graph> differentiate(Graph graph, PlanMode mode, double label_smoothing) {
  if (graph.logits == kNoTensor || graph.at(graph.logits).shape.size() != 2) {
    const std::string shape = graph.logits == kNoTensor ? "nothing" : to_text(graph.at(graph.logits).shape);
    return Error{ErrorCode::kInvalidInput,
                 "the model ends in " + shape + ", the loss needs (N, classes): end with a dense layer"};
  }
  if (mode == PlanMode::kTraining) {
    prepare_for_training(graph);
    return Differentiator(std::move(graph)).run(label_smoothing);
  }
  prepare_for_evaluation(graph);
  graph.nodes.push_back(loss_node(graph));
  return graph;
}

}  // namespace evenkeel::trainer
