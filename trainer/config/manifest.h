// Local manifests: YAML (or JSON) text -> JSON, by the same types as the API server reads. Aliases, anchors,
// merge keys and duplicate keys are refused; 1 MiB, 64 levels and 100,000 nodes at most. Wraps yaml-cpp: its
// exceptions stop here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "base/result.h"

namespace evenkeel::trainer {

// All documents of the text; empty ones are left out. kInvalidInput with line and column.
base::Result<std::vector<base::Json>> parse_manifests(std::string_view text);

// The one TrainingJob in the file (other kinds, as volumes, are passed over); none or several is an error.
base::Result<base::Json> load_manifest(const std::string& path, base::Files& files);

}  // namespace evenkeel::trainer
