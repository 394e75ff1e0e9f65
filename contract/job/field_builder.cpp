#include "contract/job/field_builder.h"

namespace evenkeel::contract {
namespace {

std::string value_list(const std::vector<Json>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += i + 1 == values.size() ? " or " : ", ";
    text += values[i].is_string() ? values[i].get<std::string>() : base::dump_json(values[i]);
  }
  return text;
}

}  // namespace

FieldBuilder& FieldBuilder::only(std::vector<Json> values) {
  // An empty list, object or text says no more than its absence.
  const bool empty = values.size() == 1 && (values[0].is_structured() || values[0] == "");
  field_.unbuilt_reason =
      "is not built in this version; " + (empty ? "leave it out" : "use " + value_list(values));
  field_.built_values = std::move(values);
  return *this;
}

FieldBuilder& FieldBuilder::not_built(const std::string& hint) {
  field_.unbuilt_reason = "is not built in this version; " + hint;
  field_.built_values.clear();
  return *this;
}

FieldBuilder text(std::string name, std::string description) {
  return FieldBuilder(FieldType::kString, std::move(name), std::move(description)).length(0, 253);
}

FieldBuilder choice(std::string name, std::string description, std::vector<std::string> values) {
  return FieldBuilder(FieldType::kString, std::move(name), std::move(description)).choices(std::move(values));
}

FieldBuilder integer(std::string name, std::string description, double low, double high) {
  return FieldBuilder(FieldType::kInteger, std::move(name), std::move(description)).range(low, high);
}

FieldBuilder number(std::string name, std::string description) {
  return FieldBuilder(FieldType::kNumber, std::move(name), std::move(description));
}

FieldBuilder boolean(std::string name, std::string description) {
  return FieldBuilder(FieldType::kBoolean, std::move(name), std::move(description));
}

FieldBuilder object(std::string name, std::string description, std::vector<Field> fields) {
  return FieldBuilder(FieldType::kObject, std::move(name), std::move(description)).members(std::move(fields));
}

FieldBuilder group(std::string name, std::string description, std::vector<Field> fields) {
  return object(std::move(name), std::move(description), std::move(fields)).defaults(Json::object());
}

FieldBuilder open_object(std::string name, std::string description) {
  return FieldBuilder(FieldType::kOpen, std::move(name), std::move(description)).foreign();
}

FieldBuilder list(std::string name, std::string description, Field item, int max_items) {
  return FieldBuilder(FieldType::kArray, std::move(name), std::move(description))
      .members_are(std::move(item))
      .items(0, max_items);
}

FieldBuilder string_map(std::string name, std::string description, int max_items, int max_value_length) {
  return FieldBuilder(FieldType::kMap, std::move(name), std::move(description))
      .members_are(text("", "").length(0, max_value_length))
      .items(0, max_items);
}

}  // namespace evenkeel::contract
