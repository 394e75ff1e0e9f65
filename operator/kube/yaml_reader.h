// YAML text as a JSON value whose scalars are all strings, read under limits: no aliases, no duplicate keys,
// no merge keys, depth 64, 1 MiB, 100,000 nodes. For kubeconfig. yaml-cpp's exceptions stop here. Pure.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"

namespace evenkeel::oper {

base::Result<base::Json> read_yaml(const std::string& text);

}  // namespace evenkeel::oper
