#include "trainer/graph/plan_hash.h"

#include <algorithm>
#include <cstdio>

#include "base/hash.h"

namespace evenkeel::trainer {
namespace {

std::string parameter_text(const PlanParameter& p) {
  return " " + p.name + " " + to_text(p.shape) + " @" + std::to_string(p.offset_elements);
}

// What changes the numbers an operator computes.
std::string attributes_text(const PlanStep& step) {
  const OpAttributes& a = step.attributes;
  const Window& w = a.window;
  const auto number = [](double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    return std::string(text);
  };
  std::string text;
  if (step.op == OpKind::kConv2d || step.op == OpKind::kMaxPool || step.op == OpKind::kAvgPool ||
      step.op == OpKind::kShortcut) {
    for (const std::int64_t value : {w.height, w.width, w.stride_h, w.stride_w, w.pad_top, w.pad_left,
                                     w.pad_bottom, w.pad_right, w.dilation_h, w.dilation_w, a.groups})
      text += (text.empty() ? " window " : ",") + std::to_string(value);
  }
  if (step.op == OpKind::kBatchNorm) text += " eps " + number(a.epsilon) + " momentum " + number(a.momentum);
  if (step.op == OpKind::kDropout) text += " rate " + number(a.rate);
  if (a.label_smoothing > 0) text += " smoothing " + number(a.label_smoothing);
  if (a.residual) text += " +Add";
  if (a.relu) text += " +Relu";
  return text;
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
    layer.summary += attributes_text(step);
    for (const TensorId id : step.inputs) {
      const auto p = std::ranges::find(plan.parameters, id, &PlanParameter::tensor);
      if (p != plan.parameters.end()) layer.summary += parameter_text(*p);
    }
    if (step.op == OpKind::kSoftmaxCrossEntropy)
      layer.summary += " of " + std::to_string(plan.classes) + " classes";
    if (step.op == OpKind::kFlatten)
      layer.summary += " of " + std::to_string(plan.input_features) + " features";
  }
  if (!plan.statistics.empty()) {
    entry(layers, "statistics").summary = plan.statistics_mode == StatisticsMode::kGhost
                                              ? "Ghost " + std::to_string(plan.group)
                                          : plan.statistics_mode == StatisticsMode::kLocal ? "Local"
                                                                                           : "Sync";
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
