#include "trainer/model/presets.h"

namespace evenkeel::trainer {
namespace {

using contract::LayerSpec;

LayerSpec layer(const char* type) {
  LayerSpec spec;
  spec.type = type;
  return spec;
}

LayerSpec dense(int units, const char* activation) {
  LayerSpec spec = layer("dense");
  spec.units = units;
  spec.activation = activation;
  return spec;
}

// 784-512-512-10 on MNIST-like images: 669,706 parameters.
std::vector<LayerSpec> mlp(int num_classes) {
  constexpr int kHidden = 512;
  return {layer("flatten"), dense(kHidden, "relu"), dense(kHidden, "relu"), dense(num_classes, "")};
}

}  // namespace

base::Result<std::vector<LayerSpec>> preset_layers(const std::string& preset, int num_classes) {
  if (preset == "mlp") return mlp(num_classes);
  return base::Error{base::ErrorCode::kInvalidInput,
                     "model.preset \"" + preset + "\" is not known; known: mlp"};
}

}  // namespace evenkeel::trainer
