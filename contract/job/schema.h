// The fields of a TrainingJob as data: one tree, from which the CRD is printed (operator/crd) and by which
// C++ judges manifests (validate.h), so that both give the same verdict. Pure; made once, read by any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace evenkeel::contract {

using base::Json;

enum class FieldType {
  kObject,  // `fields`, closed
  kMap,     // string keys, values of `items[0]` or, without it, strings
  kOpen,    // object of Kubernetes' own, passed on as it is (x-kubernetes-preserve-unknown-fields)
  kArray,   // `items[0]`
  kString,
  kInteger,
  kNumber,
  kBoolean,
  kQuantity,  // "500m", 4, "32Gi" (x-kubernetes-int-or-string)
};

// A rule over one value, in two languages that the corpus holds together: CEL for the API server, C++ for the
// rest.
struct FieldRule {
  std::string cel;      // over `self` (and `oldSelf` where `transition`); empty: only C++ can judge it
  std::string message;  // names the field itself: the path of a root rule prints as <nil>. {a.b}: the value
                        // there, {#a.b}: its length
  std::function<bool(const Json& self, const Json& old_self)> holds;  // old_self is null at creation
  bool transition = false;                                            // asked only when there is an old value
  bool creation_only = false;  // not asked again of an object that was stored once (optionalOldSelf)
  std::string field_path =
      {};  // ".workers.replicas": where the error belongs, below the value that has the rule
};

struct Field {
  std::string name;
  FieldType type = FieldType::kString;
  std::string description;  // never empty: `kubectl explain`. Below a `foreign` field there is none
  Json default_value;       // null: none
  bool required = false;
  bool nullable = false;
  std::vector<std::string> enum_values;                             // all that the API knows
  std::optional<double> minimum, maximum;                           // numbers
  std::optional<int> min_items, max_items, min_length, max_length;  // items: of arrays and maps
  std::string pattern;                                              // RE2 and ECMAScript alike
  std::string format = {};                                          // date-time
  std::string list_key = {};  // kArray of objects: this member is unique (x-kubernetes-list-type: map)
  std::vector<Field> fields;  // kObject
  std::vector<Field> items;   // kArray: exactly one; kMap: at most one
  std::vector<FieldRule> rules;
  // Not built yet: what is allowed all the same (the default, or nothing), and the words that refuse the
  // rest, after the value: "is not built in this version; use None". Empty reason: built.
  std::string unbuilt_reason;
  std::vector<Json> built_values;  // empty: the field must be absent
  bool forbidden =
      false;  // declared so that the refusal has a path (hostNetwork, privileged, ...); never allowed
  bool foreign = false;  // a type of Kubernetes' own: printed without descriptions
};

// `spec` and `status`. Made once, immutable afterwards.
const Field& spec_schema();
const Field& status_schema();
// Rules of the whole object (metadata.name).
const std::vector<FieldRule>& object_rules();

// The words behind every `forbidden` field.
inline constexpr char kForbiddenReason[] = "is never allowed in a job; take it out";

}  // namespace evenkeel::contract
