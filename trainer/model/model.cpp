#include "trainer/model/model.h"

#include <map>
#include <set>

#include "trainer/graph/operators.h"
#include "trainer/model/layers.h"
#include "trainer/model/presets.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;
using contract::LayerSpec;

constexpr char kInputName[] = "input";

// "dense_1", "dense_2", ...: the n-th of its type, as the user counts them.
Status fill_in_names(std::vector<LayerSpec>& layers) {
  std::map<std::string, int> count;
  std::set<std::string> names = {kInputName};
  for (LayerSpec& layer : layers) {
    const int nth = ++count[layer.type];
    if (layer.name.empty()) layer.name = layer.type + "_" + std::to_string(nth);
    if (layer.name == kInputName)
      return invalid_layer(layer.name, "this name means the samples; choose another");
    if (!names.insert(layer.name).second) return invalid_layer(layer.name, "two layers have this name");
  }
  return {};
}

// A layer without inputs reads the one before it.
Status fill_in_inputs(std::vector<LayerSpec>& layers) {
  std::set<std::string> before = {kInputName};
  std::string last = kInputName;
  for (LayerSpec& layer : layers) {
    if (layer.inputs.empty()) layer.inputs = {last};
    for (const std::string& input : layer.inputs) {
      if (!before.contains(input))
        return invalid_layer(layer.name, "its input \"" + input + "\" is no layer before it");
    }
    before.insert(layer.name);
    last = layer.name;
  }
  return {};
}

// A layer that nobody reads would learn nothing, in silence.
Status check_all_read(const std::vector<LayerSpec>& layers) {
  std::set<std::string> read = {layers.back().name};
  for (const LayerSpec& layer : layers) read.insert(layer.inputs.begin(), layer.inputs.end());
  for (const LayerSpec& layer : layers) {
    if (!read.contains(layer.name))
      return invalid_layer(layer.name, "no other layer reads its output: name it in some layer's inputs");
  }
  return {};
}

Status check_output(const Graph& graph, const std::string& last_layer, int num_classes) {
  const Shape& shape = graph.at(graph.logits).shape;
  if (shape.size() != 2) {
    return invalid_layer(last_layer, "it is the last and gives " + to_text(shape) +
                                         ", but the loss needs (N, classes): end with flatten and dense");
  }
  if (shape[1] < num_classes) {
    return invalid_layer(last_layer, "it is the last and gives " + to_text(shape) +
                                         ", but the data set has " + std::to_string(num_classes) +
                                         " classes: set its units to " + std::to_string(num_classes));
  }
  if (graph.parameters().empty())
    return invalid_layer(last_layer, "no layer of the model has anything to learn: add a dense layer");
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
  EVENKEEL_TRY(fill_in_inputs(layers));
  EVENKEEL_TRY(check_all_read(layers));
  return layers;
}

Result<Graph> build_model(const contract::ModelSpec& spec, const Shape& sample_shape, int num_classes,
                          contract::OptimizerConvention convention) {
  if (num_classes < 1) {
    return Error{ErrorCode::kInvalidInput,
                 "the number of classes is " + std::to_string(num_classes) + ", must be at least 1"};
  }
  EVENKEEL_ASSIGN(const std::vector<LayerSpec> layers, expand_layers(spec, num_classes));
  Graph graph;
  std::map<std::string, TensorId> output_of;
  EVENKEEL_ASSIGN(output_of[kInputName], add_input(graph, sample_shape));
  for (const LayerSpec& layer : layers) {
    std::vector<TensorId> inputs;
    for (const std::string& name : layer.inputs) inputs.push_back(output_of.at(name));
    EVENKEEL_ASSIGN(output_of[layer.name], add_layer(graph, layer, inputs, convention));
  }
  graph.logits = output_of[layers.back().name];
  EVENKEEL_TRY(check_output(graph, layers.back().name, num_classes));
  return graph;
}

}  // namespace evenkeel::trainer
