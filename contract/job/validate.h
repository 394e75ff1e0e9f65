// Judges and decodes TrainingJob objects. Pure; every error has a path, the value and what to do.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "contract/job/spec.h"

namespace evenkeel::contract {

struct FieldError {
  std::string path;     // spec.workers.overrides[0].replicas
  std::string message;  // value and what to do
  std::string text() const { return path + ": " + message; }
};

// All that is wrong with `object` (apiVersion, kind, metadata, spec): types, unknown names (with the nearest
// known one), ranges, rules, fields that are not built yet. Empty: valid. `old_object` null: creation.
std::vector<FieldError> validate_job(const Json& object, const Json& old_object = Json());

// The same for a bare spec.
std::vector<FieldError> validate_spec(const Json& spec);

// Valid object -> value; else kInvalidInput with all errors, "; " between them.
base::Result<TrainingJob> decode_job(const Json& object);

// The same for a bare spec (trainer configuration).
base::Result<TrainingJobSpec> decode_spec(const Json& spec);

// `spec` with every default of the schema filled in.
Json with_defaults(const Json& spec);

}  // namespace evenkeel::contract
