// The fields of a TrainingJob as data: one tree, from which the CRD is printed (operator/crd) and by which C++ judges
// manifests (validate.h), so that both give the same verdict. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace evenkeel::contract {

using base::Json;

enum class FieldType {
  kObject,   // `fields`, closed
  kMap,      // string keys, string values
  kOpen,     // object of Kubernetes' own, passed on as it is (x-kubernetes-preserve-unknown-fields)
  kArray,    // `items[0]`
  kString,
  kInteger,
  kNumber,
  kBoolean,
  kQuantity,  // "500m", 4, "32Gi" (x-kubernetes-int-or-string)
};

// A rule over one value, in two languages that the corpus holds together: CEL for the API server, C++ for the rest.
struct FieldRule {
  std::string cel;      // over `self` (and `oldSelf` where `transition`)
  std::string message;  // names the field itself: the path of a root rule prints as <nil>
  bool (*holds)(const Json& self, const Json& old_self);  // old_self is null at creation
  bool transition = false;
};

struct Field {
  std::string name;
  FieldType type = FieldType::kString;
  std::string description;  // never empty: `kubectl explain`
  Json default_value;       // null: none
  bool required = false;
  bool nullable = false;
  std::vector<std::string> enum_values;   // all that the API knows
  std::optional<double> minimum, maximum;  // numbers
  std::optional<int> min_items, max_items, min_length, max_length;
  std::string pattern;  // RE2 and ECMAScript alike
  std::vector<Field> fields;  // kObject
  std::vector<Field> items;   // kArray: exactly one
  std::vector<FieldRule> rules;
  // Not built yet: what is allowed all the same (the default, or nothing), and the sentence that refuses the rest.
  // Empty reason: built.
  std::string unbuilt_reason;
  std::vector<Json> built_values;  // empty: the field must be absent (or its default)
  bool forbidden = false;          // declared so that the refusal has a path (hostNetwork, privileged, ...); never allowed
};

// `spec` and `status`. Made once, immutable afterwards.
const Field& spec_schema();
const Field& status_schema();
// Rules of the whole object (metadata.name).
const std::vector<FieldRule>& object_rules();

}  // namespace evenkeel::contract
