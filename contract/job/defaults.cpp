#include "contract/job/defaults.h"

#include <cmath>
#include <cstdint>

#include "contract/job/validate.h"

namespace evenkeel::contract {
namespace {

Json object_with_defaults(const Field& field, const Json& value) {
  Json result = value;
  for (const Field& member : field.fields) {
    const auto found = result.find(member.name);
    const bool absent = found == result.end() || (found->is_null() && !member.nullable);
    if (absent && member.default_value.is_null()) continue;
    result[member.name] = with_field_defaults(member, absent ? member.default_value : *found);
  }
  return result;
}

// 4.0 is a whole number to the API server; readers of the spec want it as one.
Json as_integer(const Json& value) {
  const double number = value.get<double>();
  if (number == std::floor(number) && std::abs(number) < 9007199254740992.0)
    return static_cast<std::int64_t>(number);
  return value;
}

}  // namespace

Json with_field_defaults(const Field& field, const Json& value) {
  if (field.type == FieldType::kObject && value.is_object()) return object_with_defaults(field, value);
  if (field.type == FieldType::kInteger && value.is_number_float()) return as_integer(value);
  if (field.type == FieldType::kArray && value.is_array()) {
    Json result = Json::array();
    for (const Json& item : value) result.push_back(with_field_defaults(field.items[0], item));
    return result;
  }
  return value;
}

Json with_defaults(const Json& spec) {
  return with_field_defaults(spec_schema(), spec);
}

}  // namespace evenkeel::contract
