// Writes JSON as YAML: keys in the order given, small values on one line, texts in double quotes unless they
// are plain words. Pure.
#pragma once

#include <string>

#include "base/json.h"

namespace evenkeel::oper {

std::string to_yaml(const base::Json& value);

}  // namespace evenkeel::oper
