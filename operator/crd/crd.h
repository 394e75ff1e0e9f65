// The CustomResourceDefinition of TrainingJob, printed from the tree of contract/job/schema.h. Called by
// `evenkeel-operator crd` and by the tests that compare the chart's copy with it. Pure.
#pragma once

#include <string>

#include "base/json.h"

namespace evenkeel::oper {

base::Json make_crd();

// The same as YAML, byte for byte the same every time; line one says what made it.
std::string crd_yaml();

}  // namespace evenkeel::oper
