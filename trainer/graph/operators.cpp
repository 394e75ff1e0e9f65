#include "trainer/graph/operators.h"

#include <algorithm>

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

Error shape_error(const std::string& layer, const std::string& what) {
  return Error{ErrorCode::kInvalidInput, "model layer " + layer + ": " + what};
}

Status countable(const Shape& shape) {
  const Result<std::int64_t> count = element_count(shape, 1);
  return count.ok() ? Status{} : Status(count.error());
}

// One tensor in, one out; the caller adds what else the operator reads.
Node& add_node(Graph& graph, OpKind op, const std::string& layer, TensorId x, Shape shape,
               const char* suffix) {
  Tensor output;
  output.name = layer + suffix;
  output.shape = std::move(shape);
  Node node;
  node.op = op;
  node.layer = layer;
  node.inputs = {x};
  node.outputs = {graph.add_tensor(std::move(output))};
  graph.logits = node.outputs[0];
  graph.nodes.push_back(std::move(node));
  return graph.nodes.back();
}

TensorId add_vector(Graph& graph, const std::string& name, std::int64_t size, TensorRole role,
                    InitializerKind initializer) {
  Tensor tensor;
  tensor.name = name;
  tensor.shape = {size};
  tensor.role = role;
  tensor.initializer = initializer;
  return graph.add_tensor(std::move(tensor));
}

TensorId add_kernel(Graph& graph, const std::string& layer, Shape shape, InitializerKind initializer) {
  Tensor kernel;
  kernel.name = layer + ".kernel";
  kernel.role = TensorRole::kParameter;
  kernel.initializer = initializer;
  std::int64_t receptive = 1;
  for (std::size_t i = 0; i + 2 < shape.size(); ++i) receptive *= shape[i];
  kernel.fan_in = receptive * shape[shape.size() - 2];
  kernel.fan_out = receptive * shape.back();
  kernel.shape = std::move(shape);
  kernel.decays = true;
  return graph.add_tensor(std::move(kernel));
}

Status needs_image(const Graph& graph, const std::string& layer, const char* type, TensorId x) {
  if (graph.at(x).shape.size() == 4) return {};
  return shape_error(layer, std::string(type) + " takes images (N, height, width, channels), but gets " +
                                to_text(graph.at(x).shape));
}

// TensorFlow's rule: as many outputs as ceil(in / stride), the odd zero behind.
void pad_same(std::int64_t in, std::int64_t window, std::int64_t stride, std::int64_t dilation,
              std::int64_t& before, std::int64_t& after) {
  const std::int64_t reach = (window - 1) * dilation + 1;
  const std::int64_t total =
      std::max<std::int64_t>(((in + stride - 1) / stride - 1) * stride + reach - in, 0);
  before = total / 2;
  after = total - before;
}

// Points where the window fits; the image with its zeros must be as large as the window.
Result<std::int64_t> window_places(const std::string& layer, const char* direction, std::int64_t in,
                                   std::int64_t pads, std::int64_t window, std::int64_t stride,
                                   std::int64_t dilation) {
  const std::int64_t reach = (window - 1) * dilation + 1;
  if (in + pads < reach) {
    return shape_error(layer, std::string("its window is ") + std::to_string(reach) + " in " + direction +
                                  ", larger than the image of " + std::to_string(in) + " with " +
                                  std::to_string(pads) + " zeros around");
  }
  return (in + pads - reach) / stride + 1;
}

// Fills in the pads of kSame; the shape of the output but for its channels.
Result<Shape> slide(const Graph& graph, const std::string& layer, TensorId x, Window& w, Padding padding) {
  const Shape& in = graph.at(x).shape;
  for (const std::int64_t value : {w.height, w.width, w.stride_h, w.stride_w, w.dilation_h, w.dilation_w}) {
    if (value < 1 || value > 65536)
      return shape_error(layer,
                         "window, strides and dilation must be 1 to 65536, one is " + std::to_string(value));
  }
  if (padding == Padding::kSame) {
    pad_same(in[1], w.height, w.stride_h, w.dilation_h, w.pad_top, w.pad_bottom);
    pad_same(in[2], w.width, w.stride_w, w.dilation_w, w.pad_left, w.pad_right);
  }
  EVENKEEL_ASSIGN(const std::int64_t height, window_places(layer, "height", in[1], w.pad_top + w.pad_bottom,
                                                           w.height, w.stride_h, w.dilation_h));
  EVENKEEL_ASSIGN(const std::int64_t width, window_places(layer, "width", in[2], w.pad_left + w.pad_right,
                                                          w.width, w.stride_w, w.dilation_w));
  return Shape{kBatchDim, height, width};
}

// A pool whose window lies wholly in the zeros would have nothing to take.
Status pads_below_window(const std::string& layer, const Window& w) {
  const bool ok =
      w.pad_top < w.height && w.pad_bottom < w.height && w.pad_left < w.width && w.pad_right < w.width;
  return ok ? Status{} : Status(shape_error(layer, "its pads must be smaller than its window"));
}

}  // namespace

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
  EVENKEEL_TRY(countable(input.shape));
  graph.input = graph.logits = graph.add_tensor(std::move(input));
  return graph.input;
}

Result<TensorId> add_flatten(Graph& graph, const std::string& layer, TensorId x) {
  EVENKEEL_ASSIGN(const std::int64_t features, element_count(graph.at(x).shape, 1));
  return add_node(graph, OpKind::kFlatten, layer, x, {kBatchDim, features}, ".flat").outputs[0];
}

Result<TensorId> add_reshape(Graph& graph, const std::string& layer, TensorId x, const Shape& sample_shape) {
  Shape shape = sample_shape;
  shape.insert(shape.begin(), kBatchDim);
  EVENKEEL_ASSIGN(const std::int64_t from, element_count(graph.at(x).shape, 1));
  EVENKEEL_ASSIGN(const std::int64_t to, element_count(shape, 1));
  if (from != to) {
    return shape_error(layer, "reshape from " + to_text(graph.at(x).shape) + " to " + to_text(shape) + ": " +
                                  std::to_string(from) + " values a sample cannot become " +
                                  std::to_string(to));
  }
  return add_node(graph, OpKind::kReshape, layer, x, std::move(shape), ".view").outputs[0];
}

Result<TensorId> add_relu(Graph& graph, const std::string& layer, TensorId x) {
  return add_node(graph, OpKind::kRelu, layer, x, Shape(graph.at(x).shape), ".relu").outputs[0];
}

Result<TensorId> add_sum(Graph& graph, const std::string& layer, TensorId a, TensorId b) {
  if (graph.at(a).shape != graph.at(b).shape) {
    return shape_error(layer, "add needs two inputs of one shape, but gets " + to_text(graph.at(a).shape) +
                                  " and " + to_text(graph.at(b).shape));
  }
  Node& node = add_node(graph, OpKind::kAdd, layer, a, Shape(graph.at(a).shape), ".sum");
  node.inputs.push_back(b);
  return node.outputs[0];
}

Result<TensorId> add_dropout(Graph& graph, const std::string& layer, TensorId x, double rate) {
  if (!(rate >= 0 && rate < 1))
    return shape_error(layer, "rate is " + std::to_string(rate) + ", must be 0 to below 1");
  const auto before = std::ranges::count(graph.nodes, OpKind::kDropout, &Node::op);
  Node& node = add_node(graph, OpKind::kDropout, layer, x, Shape(graph.at(x).shape), ".out");
  node.attributes.rate = rate;
  node.attributes.stream = static_cast<int>(before);
  return node.outputs[0];
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
  EVENKEEL_TRY(countable({in[1], units}));
  const TensorId kernel = add_kernel(graph, layer, {in[1], units}, kernel_initializer);
  const TensorId b = bias == Bias::kNone ? kNoTensor
                                         : add_vector(graph, layer + ".bias", units, TensorRole::kParameter,
                                                      InitializerKind::kZeros);
  Node& node = add_node(graph, OpKind::kLinear, layer, x, {kBatchDim, units}, ".out");
  node.inputs.push_back(kernel);
  if (b != kNoTensor) node.inputs.push_back(b);
  return node.outputs[0];
}

Result<TensorId> add_conv2d(Graph& graph, const std::string& layer, TensorId x, const ConvOptions& options) {
  EVENKEEL_TRY(needs_image(graph, layer, "conv2d", x));
  const std::int64_t channels = graph.at(x).shape[3];
  constexpr std::int64_t kMaxFilters = 65536;
  if (options.filters < 1 || options.filters > kMaxFilters)
    return shape_error(layer, "filters is " + std::to_string(options.filters) + ", must be 1 to 65536");
  if (options.groups < 1 || channels % options.groups != 0 || options.filters % options.groups != 0) {
    return shape_error(layer, "groups is " + std::to_string(options.groups) + ", but must divide the " +
                                  std::to_string(channels) + " channels in and the " +
                                  std::to_string(options.filters) + " filters out");
  }
  Window window = options.window;
  EVENKEEL_ASSIGN(Shape shape, slide(graph, layer, x, window, options.padding));
  shape.push_back(options.filters);
  const Shape kernel_shape = {window.height, window.width, channels / options.groups, options.filters};
  EVENKEEL_TRY(countable(kernel_shape));
  EVENKEEL_TRY(countable(shape));
  const TensorId kernel = add_kernel(graph, layer, kernel_shape, options.initializer);
  const TensorId bias = options.bias == Bias::kNone
                            ? kNoTensor
                            : add_vector(graph, layer + ".bias", options.filters, TensorRole::kParameter,
                                         InitializerKind::kZeros);
  Node& node = add_node(graph, OpKind::kConv2d, layer, x, std::move(shape), ".out");
  node.inputs.push_back(kernel);
  if (bias != kNoTensor) node.inputs.push_back(bias);
  node.attributes.window = window;
  node.attributes.groups = options.groups;
  return node.outputs[0];
}

Result<TensorId> add_pool(Graph& graph, const std::string& layer, TensorId x, PoolKind kind, Window window,
                          Padding padding) {
  EVENKEEL_TRY(needs_image(graph, layer, kind == PoolKind::kMax ? "maxPool" : "avgPool", x));
  EVENKEEL_ASSIGN(Shape shape, slide(graph, layer, x, window, padding));
  EVENKEEL_TRY(pads_below_window(layer, window));
  shape.push_back(graph.at(x).shape[3]);
  const OpKind op = kind == PoolKind::kMax ? OpKind::kMaxPool : OpKind::kAvgPool;
  Node& node = add_node(graph, op, layer, x, std::move(shape), ".out");
  node.attributes.window = window;
  return node.outputs[0];
}

Result<TensorId> add_global_avg_pool(Graph& graph, const std::string& layer, TensorId x) {
  EVENKEEL_TRY(needs_image(graph, layer, "globalAvgPool", x));
  return add_node(graph, OpKind::kGlobalAvgPool, layer, x, {kBatchDim, graph.at(x).shape[3]}, ".out")
      .outputs[0];
}

Result<TensorId> add_shortcut(Graph& graph, const std::string& layer, TensorId x, std::int64_t filters,
                              std::int64_t stride_h, std::int64_t stride_w) {
  EVENKEEL_TRY(needs_image(graph, layer, "shortcut", x));
  const Shape in = graph.at(x).shape;
  if (stride_h < 1 || stride_w < 1) return shape_error(layer, "strides must be at least 1");
  if (filters < in[3]) {
    return shape_error(layer, "filters is " + std::to_string(filters) + ", but " + std::to_string(in[3]) +
                                  " channels come in and none are dropped");
  }
  const Shape shape = {kBatchDim, (in[1] + stride_h - 1) / stride_h, (in[2] + stride_w - 1) / stride_w,
                       filters};
  Node& node = add_node(graph, OpKind::kShortcut, layer, x, shape, ".out");
  node.attributes.window.stride_h = stride_h;
  node.attributes.window.stride_w = stride_w;
  return node.outputs[0];
}

Result<TensorId> add_batch_norm(Graph& graph, const std::string& layer, TensorId x,
                                const BatchNormOptions& options) {
  const Shape in = graph.at(x).shape;
  if (in.size() < 2) return shape_error(layer, "batchNorm takes (N, ..., channels), but gets " + to_text(in));
  if (!(options.momentum >= 0 && options.momentum <= 1 && options.epsilon >= 0))
    return shape_error(layer, "momentum must be 0 to 1 and epsilon at least 0");
  const std::int64_t channels = in.back();
  const TensorId gamma =
      add_vector(graph, layer + ".gamma", channels, TensorRole::kParameter, InitializerKind::kOnes);
  const TensorId beta =
      add_vector(graph, layer + ".beta", channels, TensorRole::kParameter, InitializerKind::kZeros);
  const TensorId mean = add_vector(graph, layer + ".running_mean", channels, TensorRole::kRunningStatistic,
                                   InitializerKind::kZeros);
  const TensorId variance = add_vector(graph, layer + ".running_var", channels, TensorRole::kRunningStatistic,
                                       InitializerKind::kOnes);
  Node& node = add_node(graph, OpKind::kBatchNorm, layer, x, in, ".out");
  node.inputs.insert(node.inputs.end(), {gamma, beta, mean, variance});
  node.attributes.momentum = options.momentum;
  node.attributes.epsilon = options.epsilon;
  node.attributes.unbiased = options.unbiased;
  return node.outputs[0];
}

}  // namespace evenkeel::trainer
