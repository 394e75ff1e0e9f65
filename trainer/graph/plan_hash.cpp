#include "trainer/graph/plan_hash.h"

#include <algorithm>

#include "base/hash.h"

namespace evenkeel::trainer {
namespace {

std::string parameter_text(const PlanParameter& p) {
  return " " + p.name + " " + to_text(p.shape) + " @" + std::to_string(p.offset_elements);
}

LayerHash& entry(std::vector<LayerHash>& layers, const std::string& layer) {
  const auto found = std::ranges::find(layers, layer, &LayerHash::layer);
  if (found != layers.end()) return *found;
  return layers.emplace_back(LayerHash{layer, "", ""});
}

}  // namespace

std::vector<LayerHash> layer_hashes(const Plan& plan) {
  std::vector<LayerHash> layers;
  for (const PlanStep& step : plan.steps) {
    if (step.phase == Phase::kBackward) continue;  // follows from the forward operators
    LayerHash& layer = entry(layers, step.layer);
    layer.summary += (layer.summary.empty() ? "" : "; ") + std::string(op_name(step.op));
    if (step.fused_relu) layer.summary += " +Relu";
    for (const TensorId id : step.inputs) {
      const auto p = std::ranges::find(plan.parameters, id, &PlanParameter::tensor);
      if (p != plan.parameters.end()) layer.summary += parameter_text(*p);
    }
    if (step.op == OpKind::kSoftmaxCrossEntropy)
      layer.summary += " of " + std::to_string(plan.classes) + " classes";
    if (step.op == OpKind::kFlatten)
      layer.summary += " of " + std::to_string(plan.input_features) + " features";
  }
  LayerHash& buckets = entry(layers, "buckets");
  for (const Bucket& b : plan.buckets) {
    buckets.summary += (buckets.summary.empty() ? "" : ", ") + std::to_string(b.offset_elements) + "+" +
                       std::to_string(b.elements);
  }
  for (LayerHash& layer : layers)
    layer.hash = base::sha256_hex(layer.layer + "\n" + layer.summary).substr(0, 16);
  return layers;
}

std::string plan_hash(const std::vector<LayerHash>& layers) {
  std::string all;
  for (const LayerHash& layer : layers) all += layer.layer + " " + layer.hash + "\n";
  return base::sha256_hex(all);
}

std::string describe_difference(const std::vector<LayerHash>& ours, const std::vector<LayerHash>& theirs) {
  const std::size_t common = std::min(ours.size(), theirs.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (ours[i].layer == theirs[i].layer && ours[i].hash == theirs[i].hash) continue;
    return "the models differ at layer " + ours[i].layer + ": here " + ours[i].layer + " [" +
           ours[i].summary + "], there " + theirs[i].layer + " [" + theirs[i].summary + "]";
  }
  if (ours.size() == theirs.size()) return "";
  const bool more_here = ours.size() > common;
  const LayerHash& extra = more_here ? ours[common] : theirs[common];
  return "layer " + extra.layer + " [" + extra.summary + "] is only " + (more_here ? "here" : "there");
}

}  // namespace evenkeel::trainer
