#include "trainer/model/layers.h"

#include <functional>
#include <map>

#include "trainer/graph/operators.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using contract::LayerSpec;
using contract::OptimizerConvention;
using Inputs = std::vector<TensorId>;

Result<InitializerKind> initializer_of(const LayerSpec& layer) {
  if (layer.initializer == "heNormal") return InitializerKind::kHeNormal;
  if (layer.initializer == "heUniform") return InitializerKind::kHeUniform;
  if (layer.initializer == "glorotUniform") return InitializerKind::kGlorotUniform;
  return invalid_layer(layer.name, "initializer \"" + layer.initializer +
                                       "\" is not known; known: heNormal, heUniform, glorotUniform");
}

// [both] or [height, width]; empty: `fallback`.
struct Pair {
  std::int64_t height, width;
};
Pair pair_of(const std::vector<int>& sizes, Pair fallback) {
  if (sizes.empty()) return fallback;
  return {sizes.front(), sizes.back()};
}

struct PlacedWindow {
  Window window;
  Padding padding = Padding::kExplicit;
};

// default_stride: of pools the window, so that windows touch.
Result<PlacedWindow> window_of(const LayerSpec& layer, bool pool) {
  if (layer.kernel_size.empty()) return invalid_layer(layer.name, layer.type + " needs kernelSize");
  PlacedWindow placed;
  Window& w = placed.window;
  const Pair size = pair_of(layer.kernel_size, {1, 1});
  const Pair stride = pair_of(layer.strides, pool ? size : Pair{1, 1});
  const Pair dilation = pair_of(layer.dilation, {1, 1});
  w.height = size.height, w.width = size.width;
  w.stride_h = stride.height, w.stride_w = stride.width;
  w.dilation_h = dilation.height, w.dilation_w = dilation.width;
  if (layer.pads.size() == 4) {
    w.pad_top = layer.pads[0], w.pad_left = layer.pads[1];
    w.pad_bottom = layer.pads[2], w.pad_right = layer.pads[3];
  } else {
    const Pair pad = pair_of(layer.pads, {0, 0});
    w.pad_top = w.pad_bottom = pad.height;
    w.pad_left = w.pad_right = pad.width;
  }
  if (layer.padding == "same") placed.padding = Padding::kSame;
  return placed;
}

Result<TensorId> add_dense(Graph& graph, const LayerSpec& layer, TensorId x) {
  EVENKEEL_ASSIGN(const InitializerKind initializer, initializer_of(layer));
  return add_linear(graph, layer.name, x, layer.units, layer.bias ? Bias::kZeros : Bias::kNone, initializer);
}

Result<TensorId> add_convolution(Graph& graph, const LayerSpec& layer, TensorId x) {
  EVENKEEL_ASSIGN(const InitializerKind initializer, initializer_of(layer));
  EVENKEEL_ASSIGN(const PlacedWindow placed, window_of(layer, false));
  ConvOptions options;
  options.filters = layer.filters;
  options.window = placed.window;
  options.padding = placed.padding;
  options.groups = layer.groups;
  options.bias = layer.bias ? Bias::kZeros : Bias::kNone;
  options.initializer = initializer;
  return add_conv2d(graph, layer.name, x, options);
}

Result<TensorId> add_pool_layer(Graph& graph, const LayerSpec& layer, TensorId x) {
  EVENKEEL_ASSIGN(const PlacedWindow placed, window_of(layer, true));
  const PoolKind kind = layer.type == "maxPool" ? PoolKind::kMax : PoolKind::kAvg;
  return add_pool(graph, layer.name, x, kind, placed.window, placed.padding);
}

Result<TensorId> add_norm(Graph& graph, const LayerSpec& layer, TensorId x, OptimizerConvention convention) {
  BatchNormOptions options;
  if (convention == OptimizerConvention::kKeras) options = {0.01, 1e-3, false};
  options.momentum = layer.momentum.value_or(options.momentum);
  options.epsilon = layer.epsilon.value_or(options.epsilon);
  return add_batch_norm(graph, layer.name, x, options);
}

Result<TensorId> add_shortcut_layer(Graph& graph, const LayerSpec& layer, TensorId x) {
  const Pair stride = pair_of(layer.strides, {1, 1});
  return add_shortcut(graph, layer.name, x, layer.filters, stride.height, stride.width);
}

using Adder = std::function<Result<TensorId>(Graph&, const LayerSpec&, const Inputs&, OptimizerConvention)>;

// By type; the order is that of the message for an unknown one.
const std::map<std::string, Adder>& adders() {
  static const std::map<std::string, Adder> table = {
      {"dense", [](auto& g, auto& l, auto& in, auto) { return add_dense(g, l, in[0]); }},
      {"flatten", [](auto& g, auto& l, auto& in, auto) { return add_flatten(g, l.name, in[0]); }},
      {"relu", [](auto& g, auto& l, auto& in, auto) { return add_relu(g, l.name, in[0]); }},
      {"conv2d", [](auto& g, auto& l, auto& in, auto) { return add_convolution(g, l, in[0]); }},
      {"batchNorm", [](auto& g, auto& l, auto& in, auto c) { return add_norm(g, l, in[0], c); }},
      {"maxPool", [](auto& g, auto& l, auto& in, auto) { return add_pool_layer(g, l, in[0]); }},
      {"avgPool", [](auto& g, auto& l, auto& in, auto) { return add_pool_layer(g, l, in[0]); }},
      {"globalAvgPool",
       [](auto& g, auto& l, auto& in, auto) { return add_global_avg_pool(g, l.name, in[0]); }},
      {"dropout", [](auto& g, auto& l, auto& in, auto) { return add_dropout(g, l.name, in[0], l.rate); }},
      {"add", [](auto& g, auto& l, auto& in, auto) { return add_sum(g, l.name, in[0], in[1]); }},
      {"reshape", [](auto& g, auto& l, auto& in, auto) { return add_reshape(g, l.name, in[0], l.shape); }},
      {"shortcut", [](auto& g, auto& l, auto& in, auto) { return add_shortcut_layer(g, l, in[0]); }}};
  return table;
}

}  // namespace

Error invalid_layer(const std::string& layer, const std::string& what) {
  return Error{ErrorCode::kInvalidInput, "model layer " + layer + ": " + what};
}

Result<TensorId> add_layer(Graph& graph, const LayerSpec& layer, const Inputs& inputs,
                           OptimizerConvention convention) {
  const auto adder = adders().find(layer.type);
  if (adder == adders().end()) {
    std::string known;
    for (const auto& [type, unused] : adders()) known += (known.empty() ? "" : ", ") + type;
    return invalid_layer(layer.name, "type \"" + layer.type + "\" is not known; known: " + known);
  }
  if (!layer.activation.empty() && layer.activation != "relu")
    return invalid_layer(layer.name, "activation \"" + layer.activation + "\" is not known; known: relu");
  const std::size_t takes = layer.type == "add" ? 2 : 1;
  if (inputs.size() != takes) {
    return invalid_layer(layer.name, layer.type + " takes " + std::to_string(takes) + " inputs, but " +
                                         std::to_string(inputs.size()) + " are given");
  }
  EVENKEEL_ASSIGN(const TensorId y, adder->second(graph, layer, inputs, convention));
  return layer.activation == "relu" ? add_relu(graph, layer.name, y) : Result<TensorId>(y);
}

}  // namespace evenkeel::trainer
