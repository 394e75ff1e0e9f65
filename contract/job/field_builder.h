// Short words for writing the tree of schema.h: integer("keep", "...").range(1, 1000).defaults(3). Used by
// the schema_*.cpp files alone.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "contract/job/schema.h"

namespace evenkeel::contract {

// Whole numbers that JSON readers of every language keep exact.
inline constexpr double kMaxInteger = 9007199254740991.0;

class FieldBuilder {
 public:
  FieldBuilder(FieldType type, std::string name, std::string description) {
    field_.type = type;
    field_.name = std::move(name);
    field_.description = std::move(description);
  }
  explicit FieldBuilder(Field field) : field_(std::move(field)) {}
  operator Field() const { return field_; }  // NOLINT: implicit on purpose

  FieldBuilder& defaults(Json value) {
    field_.default_value = std::move(value);
    return *this;
  }
  FieldBuilder& required() {
    field_.required = true;
    return *this;
  }
  FieldBuilder& nullable() {
    field_.nullable = true;
    return *this;
  }
  FieldBuilder& foreign() {
    field_.foreign = true;
    return *this;
  }
  FieldBuilder& forbidden() {
    field_.forbidden = true;
    return *this;
  }
  FieldBuilder& range(double low, double high) {
    field_.minimum = low;
    field_.maximum = high;
    return *this;
  }
  FieldBuilder& items(int low, int high) {
    field_.min_items = low;
    field_.max_items = high;
    return *this;
  }
  FieldBuilder& length(int low, int high) {
    field_.min_length = low;
    field_.max_length = high;
    return *this;
  }
  FieldBuilder& pattern(std::string text) {
    field_.pattern = std::move(text);
    return *this;
  }
  FieldBuilder& format(std::string text) {
    field_.format = std::move(text);
    return *this;
  }
  FieldBuilder& keyed_by(std::string member) {
    field_.list_key = std::move(member);
    return *this;
  }
  FieldBuilder& choices(std::vector<std::string> values) {
    field_.enum_values = std::move(values);
    return *this;
  }
  FieldBuilder& members(std::vector<Field> fields) {
    field_.fields = std::move(fields);
    return *this;
  }
  FieldBuilder& members_are(Field item) {
    field_.items = {std::move(item)};
    return *this;
  }
  FieldBuilder& rule(FieldRule rule) {
    field_.rules.push_back(std::move(rule));
    return *this;
  }
  FieldBuilder& rules(const std::vector<FieldRule>& rules) {
    field_.rules.insert(field_.rules.end(), rules.begin(), rules.end());
    return *this;
  }
  // Only these values are built: "is not built in this version; use A or B".
  FieldBuilder& only(std::vector<Json> values);
  // Known, and refused wherever it appears.
  FieldBuilder& not_built(const std::string& hint = "leave it out");

 private:
  Field field_;
};

FieldBuilder text(std::string name,
                  std::string description);  // at most 253 characters unless length() says else
FieldBuilder choice(std::string name, std::string description, std::vector<std::string> values);
FieldBuilder integer(std::string name, std::string description, double low = 0, double high = kMaxInteger);
FieldBuilder number(std::string name, std::string description);
FieldBuilder boolean(std::string name, std::string description);
FieldBuilder object(std::string name, std::string description, std::vector<Field> fields);
// An object whose members have defaults, and which is therefore always there.
FieldBuilder group(std::string name, std::string description, std::vector<Field> fields);
FieldBuilder open_object(std::string name, std::string description);
FieldBuilder list(std::string name, std::string description, Field item, int max_items);
FieldBuilder string_map(std::string name, std::string description, int max_items, int max_value_length);

}  // namespace evenkeel::contract
