// Models by name. Private to this folder; reached by expand_layers() in model.h.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "contract/job/spec.h"

namespace evenkeel::trainer {

// kInvalidInput with the known names.
base::Result<std::vector<contract::LayerSpec>> preset_layers(const std::string& preset, int num_classes);

}  // namespace evenkeel::trainer
