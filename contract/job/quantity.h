// Kubernetes quantities ("500m", "4", "32Gi", "1e3", or a JSON integer) as numbers. Called by validation,
// render, local and the demo. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace evenkeel::contract {

// The value itself, in cores or bytes. Errors: kInvalidInput, with the text and the forms that are known.
base::Result<double> parse_quantity(std::string_view text);
// A string or an integer, as manifests have it.
base::Result<double> parse_quantity(const base::Json& value);

// Thousandths of a core, rounded up as Kubernetes does.
base::Result<std::int64_t> quantity_milli_cores(const base::Json& value);
base::Result<std::int64_t> quantity_bytes(const base::Json& value);

}  // namespace evenkeel::contract
