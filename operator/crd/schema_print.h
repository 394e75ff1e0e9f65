// One field of contract/job/schema.h as OpenAPI v3 with x-kubernetes extensions. Pure.
#pragma once

#include <vector>

#include "base/json.h"
#include "contract/job/schema.h"

namespace evenkeel::oper {

base::Json print_field(const contract::Field& field);
// Rules without CEL are left out: only the operator can judge them.
base::Json print_rules(const std::vector<contract::FieldRule>& rules);

}  // namespace evenkeel::oper
