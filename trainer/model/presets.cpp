#include "trainer/model/presets.h"

namespace evenkeel::trainer {
namespace {

using contract::LayerSpec;
using Layers = std::vector<LayerSpec>;

LayerSpec layer(const std::string& type, const std::string& name = "") {
  LayerSpec spec;
  spec.type = type;
  spec.name = name;
  return spec;
}

LayerSpec dense(const std::string& name, int units, const char* activation = "") {
  LayerSpec spec = layer("dense", name);
  spec.units = units;
  spec.activation = activation;
  return spec;
}

// Without a bias: batch normalisation follows, and would take it out again.
LayerSpec conv(const std::string& name, int filters, int kernel, int stride, int pad) {
  LayerSpec spec = layer("conv2d", name);
  spec.filters = filters;
  spec.kernel_size = {kernel};
  spec.strides = {stride};
  spec.pads = {pad};
  spec.bias = false;
  return spec;
}

LayerSpec batch_norm(const std::string& name, const char* activation = "") {
  LayerSpec spec = layer("batchNorm", name);
  spec.activation = activation;
  return spec;
}

LayerSpec max_pool(const std::string& name, int window, int stride, int pad) {
  LayerSpec spec = layer("maxPool", name);
  spec.kernel_size = {window};
  spec.strides = {stride};
  spec.pads = {pad};
  return spec;
}

LayerSpec from(LayerSpec spec, const std::string& input) {
  spec.inputs = {input};
  return spec;
}

LayerSpec add(const std::string& name, const std::string& a, const std::string& b) {
  LayerSpec spec = layer("add", name);
  spec.inputs = {a, b};
  spec.activation = "relu";
  return spec;
}

// 784-512-512-10 on MNIST-like images: 669,706 parameters.
Layers mlp(int num_classes) {
  constexpr int kHidden = 512;
  return {layer("flatten"), dense("", kHidden, "relu"), dense("", kHidden, "relu"), dense("", num_classes)};
}

LayerSpec lenet_conv(const std::string& name, int filters, int pad) {
  LayerSpec spec = conv(name, filters, 5, 1, pad);
  spec.bias = true;
  spec.activation = "relu";
  return spec;
}

// LeNet-5 on 28 x 28, padded to 32 x 32: 61,706 parameters.
Layers lenet(int num_classes) {
  return {lenet_conv("conv1", 6, 2),  max_pool("pool1", 2, 2, 0), lenet_conv("conv2", 16, 0),
          max_pool("pool2", 2, 2, 0), layer("flatten", "flat"),   dense("fc1", 120, "relu"),
          dense("fc2", 84, "relu"),   dense("fc3", num_classes)};
}

// Two 3x3 convolutions beside a path without parameters (He et al. 2015, CIFAR, option A).
void basic_block(Layers& layers, const std::string& name, int filters, int stride) {
  const std::string input = layers.back().name;
  layers.push_back(conv(name + "_conv1", filters, 3, stride, 1));
  layers.push_back(batch_norm(name + "_bn1", "relu"));
  layers.push_back(conv(name + "_conv2", filters, 3, 1, 1));
  layers.push_back(batch_norm(name + "_bn2"));
  std::string beside = input;
  if (stride != 1) {
    LayerSpec shortcut = from(layer("shortcut", name + "_short"), input);
    shortcut.filters = filters;
    shortcut.strides = {stride};
    beside = shortcut.name;
    layers.push_back(shortcut);
  }
  layers.push_back(add(name + "_add", name + "_bn2", beside));
}

// 269,722 parameters with 10 classes.
Layers resnet20(int num_classes) {
  Layers layers = {conv("conv0", 16, 3, 1, 1), batch_norm("bn0", "relu")};
  for (int stage = 1; stage <= 3; ++stage) {
    for (int block = 1; block <= 3; ++block) {
      const std::string name = "s" + std::to_string(stage) + "b" + std::to_string(block);
      basic_block(layers, name, 8 << stage, stage > 1 && block == 1 ? 2 : 1);
    }
  }
  layers.push_back(layer("globalAvgPool", "pool"));
  layers.push_back(dense("fc", num_classes));
  return layers;
}

// 1x1, 3x3, 1x1 beside the input or its projection; version 1.5: the 3x3 strides, not the first 1x1.
void bottleneck(Layers& layers, const std::string& name, int filters, int stride, bool projects) {
  const std::string input = layers.back().name;
  layers.push_back(conv(name + "_conv1", filters, 1, 1, 0));
  layers.push_back(batch_norm(name + "_bn1", "relu"));
  layers.push_back(conv(name + "_conv2", filters, 3, stride, 1));
  layers.push_back(batch_norm(name + "_bn2", "relu"));
  layers.push_back(conv(name + "_conv3", 4 * filters, 1, 1, 0));
  layers.push_back(batch_norm(name + "_bn3"));
  std::string beside = input;
  if (projects) {
    layers.push_back(from(conv(name + "_proj", 4 * filters, 1, stride, 0), input));
    layers.push_back(batch_norm(name + "_projbn"));
    beside = name + "_projbn";
  }
  layers.push_back(add(name + "_add", name + "_bn3", beside));
}

// 25,557,032 parameters with 1,000 classes.
Layers resnet50(int num_classes) {
  constexpr int kBlocks[] = {3, 4, 6, 3};
  Layers layers = {conv("conv0", 64, 7, 2, 3), batch_norm("bn0", "relu"), max_pool("pool0", 3, 2, 1)};
  for (int stage = 0; stage < 4; ++stage) {
    for (int block = 0; block < kBlocks[stage]; ++block) {
      const std::string name = "s" + std::to_string(stage + 1) + "b" + std::to_string(block + 1);
      bottleneck(layers, name, 64 << stage, stage > 0 && block == 0 ? 2 : 1, block == 0);
    }
  }
  layers.push_back(layer("globalAvgPool", "pool"));
  layers.push_back(dense("fc", num_classes));
  return layers;
}

}  // namespace

base::Result<std::vector<LayerSpec>> preset_layers(const std::string& preset, int num_classes) {
  if (preset == "mlp") return mlp(num_classes);
  if (preset == "lenet") return lenet(num_classes);
  if (preset == "resnet20") return resnet20(num_classes);
  if (preset == "resnet50") return resnet50(num_classes);
  return base::Error{base::ErrorCode::kInvalidInput,
                     "model.preset \"" + preset + "\" is not known; known: mlp, lenet, resnet20, resnet50"};
}

}  // namespace evenkeel::trainer
