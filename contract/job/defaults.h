// Fills in defaults exactly as the API server does: only below objects that are there, null members with a
// default count as absent. Any JSON is accepted; what does not fit the tree is left for validation. Pure.
#pragma once

#include "contract/job/schema.h"

namespace evenkeel::contract {

Json with_field_defaults(const Field& field, const Json& value);

}  // namespace evenkeel::contract
