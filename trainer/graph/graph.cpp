#include "trainer/graph/graph.h"

#include <algorithm>

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

Error shape_error(const std::string& layer, const std::string& what) {
  return Error{ErrorCode::kInvalidInput, "model layer " + layer + ": " + what};
}

// y = op(x), for operators with one tensor in and one out.
TensorId add_unary(Graph& graph, OpKind op, const std::string& layer, TensorId x, Shape shape,
                   const char* suffix) {
  Tensor output;
  output.name = layer + suffix;
  output.shape = std::move(shape);
  const TensorId y = graph.add_tensor(std::move(output));
  Node node;
  node.op = op;
  node.layer = layer;
  node.inputs = {x};
  node.outputs = {y};
  graph.nodes.push_back(std::move(node));
  graph.logits = y;
  return y;
}

TensorId add_parameter(Graph& graph, const std::string& name, Shape shape) {
  Tensor parameter;
  parameter.name = name;
  parameter.shape = std::move(shape);
  parameter.role = TensorRole::kParameter;
  return graph.add_tensor(std::move(parameter));
}

}  // namespace

std::string to_text(const Shape& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += shape[i] == kBatchDim ? "N" : std::to_string(shape[i]);
  }
  return text + ")";
}

Result<std::int64_t> element_count(const Shape& shape, std::int64_t batch) {
  constexpr std::int64_t kMax = std::int64_t{1} << 62;
  std::int64_t count = 1;
  for (const std::int64_t dim : shape) {
    const std::int64_t size = dim == kBatchDim ? batch : dim;
    if (__builtin_mul_overflow(count, size, &count) || count > kMax) {
      return Error{ErrorCode::kInvalidInput, "a tensor of shape " + to_text(shape) + " with N = " +
                                                 std::to_string(batch) + " is beyond what can be counted"};
    }
  }
  return count;
}

const char* op_name(OpKind op) {
  switch (op) {
    case OpKind::kFlatten:
      return "Flatten";
    case OpKind::kLinear:
      return "Linear";
    case OpKind::kRelu:
      return "Relu";
    case OpKind::kSoftmaxCrossEntropy:
      return "SoftmaxCrossEntropy";
    case OpKind::kReluBackward:
      return "ReluBackward";
    case OpKind::kLinearBackwardData:
      return "LinearBackwardData";
    case OpKind::kLinearBackwardWeights:
      return "LinearBackwardWeights";
    case OpKind::kReshapeBackward:
      return "ReshapeBackward";
  }
  return "?";
}

TensorId Graph::add_tensor(Tensor tensor) {
  tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(tensors.size()) - 1;
}

std::vector<TensorId> Graph::parameters() const {
  std::vector<TensorId> ids;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].role == TensorRole::kParameter) ids.push_back(static_cast<TensorId>(i));
  }
  return ids;
}

std::int64_t Graph::parameter_count() const {
  std::int64_t count = 0;
  for (const TensorId id : parameters()) count += element_count(at(id).shape, 1).value();
  return count;
}

Result<TensorId> add_input(Graph& graph, Shape sample_shape) {
  for (const std::int64_t dim : sample_shape) {
    if (dim < 1)
      return Error{ErrorCode::kInvalidInput, "samples of shape " + to_text(sample_shape) + " hold nothing"};
  }
  Tensor input;
  input.name = "input";
  input.shape = std::move(sample_shape);
  input.shape.insert(input.shape.begin(), kBatchDim);
  input.role = TensorRole::kInput;
  EVENKEEL_TRY(element_count(input.shape, 1).ok() ? base::Status{} : element_count(input.shape, 1).error());
  graph.input = graph.logits = graph.add_tensor(std::move(input));
  return graph.input;
}

Result<TensorId> add_flatten(Graph& graph, const std::string& layer, TensorId x) {
  EVENKEEL_ASSIGN(const std::int64_t features, element_count(graph.at(x).shape, 1));
  return add_unary(graph, OpKind::kFlatten, layer, x, {kBatchDim, features}, ".flat");
}

Result<TensorId> add_relu(Graph& graph, const std::string& layer, TensorId x) {
  return add_unary(graph, OpKind::kRelu, layer, x, Shape(graph.at(x).shape), ".relu");
}

Result<TensorId> add_linear(Graph& graph, const std::string& layer, TensorId x, std::int64_t units, Bias bias,
                            InitializerKind kernel_initializer) {
  const Shape in = graph.at(x).shape;
  if (in.size() != 2) {
    return shape_error(
        layer, "dense takes (N, features), but gets " + to_text(in) + ": put a flatten layer before it");
  }
  constexpr std::int64_t kMaxUnits = std::int64_t{1} << 24;  // a typo, not a layer
  if (units < 1 || units > kMaxUnits) {
    return shape_error(layer,
                       "units is " + std::to_string(units) + ", must be 1 to " + std::to_string(kMaxUnits));
  }
  const TensorId kernel = add_parameter(graph, layer + ".kernel", {in[1], units});
  Tensor& k = graph.tensors[static_cast<std::size_t>(kernel)];
  k.initializer = kernel_initializer;
  k.fan_in = in[1];
  k.fan_out = units;
  k.decays = true;
  EVENKEEL_TRY(element_count(k.shape, 1).ok() ? base::Status{} : element_count(k.shape, 1).error());
  const TensorId b = bias == Bias::kNone ? kNoTensor : add_parameter(graph, layer + ".bias", {units});
  const TensorId y = add_unary(graph, OpKind::kLinear, layer, x, {kBatchDim, units}, ".out");
  Node& node = graph.nodes.back();
  node.inputs.push_back(kernel);
  if (b != kNoTensor) node.inputs.push_back(b);
  return y;
}

}  // namespace evenkeel::trainer
