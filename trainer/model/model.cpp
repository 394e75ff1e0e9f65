#include "trainer/model/model.h"

#include <map>
#include <set>

#include "trainer/model/presets.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;
using contract::LayerSpec;

Error invalid(const std::string& layer, const std::string& what) {
  return Error{ErrorCode::kInvalidInput, "model layer " + layer + ": " + what};
}

Result<InitializerKind> initializer_of(const LayerSpec& layer) {
  if (layer.initializer == "heNormal") return InitializerKind::kHeNormal;
  if (layer.initializer == "heUniform") return InitializerKind::kHeUniform;
  if (layer.initializer == "glorotUniform") return InitializerKind::kGlorotUniform;
  return invalid(layer.name, "initializer \"" + layer.initializer +
                                 "\" is not known; known: heNormal, heUniform, glorotUniform");
}

// "dense_1", "dense_2", ...: the n-th of its type, as the user counts them.
Status fill_in_names(std::vector<LayerSpec>& layers) {
  std::map<std::string, int> count;
  std::set<std::string> names;
  for (LayerSpec& layer : layers) {
    const int nth = ++count[layer.type];
    if (layer.name.empty()) layer.name = layer.type + "_" + std::to_string(nth);
    if (!names.insert(layer.name).second) return invalid(layer.name, "two layers have this name");
  }
  return {};
}

// x -> the layer's output, appended to the graph.
Result<TensorId> add_layer(Graph& graph, const LayerSpec& layer, TensorId x) {
  if (layer.type == "flatten") return add_flatten(graph, layer.name, x);
  if (layer.type == "relu") return add_relu(graph, layer.name, x);
  if (layer.type != "dense") {
    return invalid(layer.name, "type \"" + layer.type + "\" is not known; known: dense, flatten, relu");
  }
  if (!layer.activation.empty() && layer.activation != "relu") {
    return invalid(layer.name, "activation \"" + layer.activation + "\" is not known; known: relu");
  }
  EVENKEEL_ASSIGN(const InitializerKind initializer, initializer_of(layer));
  const Bias bias = layer.bias ? Bias::kZeros : Bias::kNone;
  EVENKEEL_ASSIGN(const TensorId y, add_linear(graph, layer.name, x, layer.units, bias, initializer));
  return layer.activation == "relu" ? add_relu(graph, layer.name, y) : Result<TensorId>(y);
}

Status check_output(const Graph& graph, const std::string& last_layer, int num_classes) {
  const Shape& shape = graph.at(graph.logits).shape;
  if (shape.size() != 2) {
    return invalid(last_layer, "it is the last and gives " + to_text(shape) +
                                   ", but the loss needs (N, classes): end with flatten and dense");
  }
  if (shape[1] < num_classes) {
    return invalid(last_layer, "it is the last and gives " + to_text(shape) + ", but the data set has " +
                                   std::to_string(num_classes) + " classes: set its units to " +
                                   std::to_string(num_classes));
  }
  if (graph.parameters().empty())
    return invalid(last_layer, "no layer of the model has anything to learn: add a dense layer");
  return {};
}

}  // namespace

int output_classes(const contract::ModelSpec& spec) {
  if (spec.num_classes > 0) return spec.num_classes;
  for (auto layer = spec.layers.rbegin(); layer != spec.layers.rend(); ++layer) {
    if (layer->type == "dense") return layer->units;
  }
  return 0;
}

Result<std::vector<LayerSpec>> expand_layers(const contract::ModelSpec& spec, int num_classes) {
  std::vector<LayerSpec> layers = spec.layers;
  if (!spec.preset.empty()) {
    EVENKEEL_ASSIGN(layers, preset_layers(spec.preset, num_classes));
  }
  if (layers.empty())
    return Error{ErrorCode::kInvalidInput, "the model has no layers: give model.preset or model.layers"};
  EVENKEEL_TRY(fill_in_names(layers));
  return layers;
}

Result<Graph> build_model(const contract::ModelSpec& spec, const Shape& sample_shape, int num_classes) {
  if (num_classes < 1) {
    return Error{ErrorCode::kInvalidInput,
                 "the number of classes is " + std::to_string(num_classes) + ", must be at least 1"};
  }
  EVENKEEL_ASSIGN(const std::vector<LayerSpec> layers, expand_layers(spec, num_classes));
  Graph graph;
  EVENKEEL_ASSIGN(TensorId x, add_input(graph, sample_shape));
  for (const LayerSpec& layer : layers) {
    EVENKEEL_ASSIGN(x, add_layer(graph, layer, x));
  }
  EVENKEEL_TRY(check_output(graph, layers.back().name, num_classes));
  return graph;
}

}  // namespace evenkeel::trainer
