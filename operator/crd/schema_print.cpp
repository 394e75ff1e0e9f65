#include "operator/crd/schema_print.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "contract/job/rule_message.h"

namespace evenkeel::oper {
namespace {

using base::Json;
using contract::Field;
using contract::FieldRule;
using contract::FieldType;
using contract::MessagePiece;

const char* type_name(FieldType type) {
  switch (type) {
    case FieldType::kObject:
    case FieldType::kMap:
    case FieldType::kOpen:
      return "object";
    case FieldType::kArray:
      return "array";
    case FieldType::kString:
      return "string";
    case FieldType::kInteger:
      return "integer";
    case FieldType::kNumber:
      return "number";
    case FieldType::kBoolean:
      return "boolean";
    case FieldType::kQuantity:
      return "";
  }
  return "";
}

Json number_json(double number) {
  const bool whole = std::abs(number) < 9007199254740992.0 && number == std::floor(number);
  return whole ? Json(static_cast<std::int64_t>(number)) : Json(number);
}

std::string cel_literal(const Json& value, FieldType type) {
  if (value.is_string()) return "'" + value.get<std::string>() + "'";
  if (type == FieldType::kNumber && value.is_number_integer()) return base::dump_json(value) + ".0";
  return base::dump_json(value);
}

// 'text %s %d'.format([...]), or nothing if the message has no placeholder.
std::string message_expression(const FieldRule& rule) {
  std::string format;
  std::string arguments;
  for (const MessagePiece& piece : contract::message_pieces(rule.message)) {
    if (piece.kind == MessagePiece::Kind::kText) {
      format += piece.text;
      continue;
    }
    const std::string value = piece.path.empty() ? "self" : "self." + piece.path;
    format += piece.kind == MessagePiece::Kind::kLength ? "%d" : "%s";
    arguments += (arguments.empty() ? "" : ", ") +
                 (piece.kind == MessagePiece::Kind::kLength ? "size(" + value + ")" : value);
  }
  return arguments.empty() ? "" : "\"" + format + "\".format([" + arguments + "])";
}

// The message without its placeholders, for a server that cannot evaluate the expression.
std::string plain_message(const FieldRule& rule) {
  std::string text;
  for (const MessagePiece& piece : contract::message_pieces(rule.message)) {
    if (piece.kind != MessagePiece::Kind::kText) continue;
    text += !text.empty() && text.back() == ' ' && piece.text.starts_with(' ') ? piece.text.substr(1)
                                                                               : piece.text;
  }
  return text;
}

Json print_rule(const FieldRule& rule) {
  Json out = Json::object();
  out["rule"] = rule.creation_only ? "oldSelf.hasValue() || " + rule.cel : rule.cel;
  if (rule.creation_only) out["optionalOldSelf"] = true;
  out["message"] = plain_message(rule);
  const std::string expression = message_expression(rule);
  if (!expression.empty()) out["messageExpression"] = expression;
  if (!rule.field_path.empty()) out["fieldPath"] = rule.field_path;
  return out;
}

// What unbuilt_reason and built_values say, as a rule. Open objects have no size in CEL: they are limited
// instead.
FieldRule unbuilt_rule(const Field& field) {
  std::string cel;
  for (const Json& value : field.built_values) {
    cel += cel.empty() ? "" : " || ";
    cel += value.is_array() ? "size(self) == 0" : "self == " + cel_literal(value, field.type);
  }
  const bool scalar =
      field.type != FieldType::kArray && field.type != FieldType::kObject && field.type != FieldType::kOpen;
  return {.cel = cel.empty() ? "false" : cel,
          .message = field.name + (scalar ? " {} " : " ") + field.unbuilt_reason,
          .holds = {}};
}

std::vector<FieldRule> all_rules(const Field& field) {
  if (field.forbidden)
    return {{.cel = "false", .message = field.name + " " + contract::kForbiddenReason, .holds = {}}};
  std::vector<FieldRule> rules = field.rules;
  const bool limited = field.type == FieldType::kOpen && !field.built_values.empty();
  if (!field.unbuilt_reason.empty() && !limited) rules.insert(rules.begin(), unbuilt_rule(field));
  return rules;
}

std::string full_description(const Field& field) {
  std::string text = field.description;
  if (!field.default_value.is_null() && !field.default_value.is_structured() && field.default_value != "") {
    const Json& value = field.default_value;
    text += " Default: " + (value.is_string() ? value.get<std::string>() : contract::value_text(value)) + ".";
  }
  if (!field.unbuilt_reason.empty()) text += " Another value than the default is not built in this version.";
  return text;
}

void print_limits(const Field& field, Json* out) {
  if (!field.pattern.empty()) (*out)["pattern"] = field.pattern;
  if (!field.format.empty()) (*out)["format"] = field.format;
  if (field.minimum) (*out)["minimum"] = number_json(*field.minimum);
  if (field.maximum) (*out)["maximum"] = number_json(*field.maximum);
  if (field.min_length && *field.min_length > 0) (*out)["minLength"] = *field.min_length;
  if (field.max_length) (*out)["maxLength"] = *field.max_length;
  const bool map = field.type == FieldType::kMap;
  if (field.min_items && *field.min_items > 0) (*out)[map ? "minProperties" : "minItems"] = *field.min_items;
  if (field.max_items) (*out)[map ? "maxProperties" : "maxItems"] = *field.max_items;
  if (!field.enum_values.empty()) (*out)["enum"] = field.enum_values;
}

Json print(const Field& field, bool described);

void print_children(const Field& field, bool described, Json* out) {
  Json required = Json::array();
  for (const Field& member : field.fields) {
    (*out)["properties"][member.name] = print(member, described);
    if (member.required) required.push_back(member.name);
  }
  if (!required.empty()) (*out)["required"] = required;
  if (field.items.empty()) return;
  (*out)[field.type == FieldType::kMap ? "additionalProperties" : "items"] = print(field.items[0], described);
  if (field.list_key.empty()) return;
  (*out)["x-kubernetes-list-type"] = "map";
  (*out)["x-kubernetes-list-map-keys"] = Json::array({field.list_key});
}

Json print(const Field& field, bool described) {
  Json out = Json::object();
  if (described && !field.forbidden) out["description"] = full_description(field);
  if (field.type == FieldType::kQuantity) {
    out["x-kubernetes-int-or-string"] = true;
  } else {
    out["type"] = type_name(field.type);
  }
  if (field.type == FieldType::kInteger) out["format"] = "int64";
  if (field.nullable) out["nullable"] = true;
  if (!field.default_value.is_null()) out["default"] = field.default_value;
  print_limits(field, &out);
  print_children(field, described && !field.foreign, &out);
  if (field.type == FieldType::kOpen) out["x-kubernetes-preserve-unknown-fields"] = true;
  if (field.type == FieldType::kOpen && !field.built_values.empty()) out["maxProperties"] = 0;
  const Json rules = print_rules(all_rules(field));
  if (!rules.empty()) out["x-kubernetes-validations"] = rules;
  return out;
}

}  // namespace

Json print_field(const Field& field) {
  return print(field, true);
}

Json print_rules(const std::vector<FieldRule>& rules) {
  Json out = Json::array();
  for (const FieldRule& rule : rules) {
    if (!rule.cel.empty()) out.push_back(print_rule(rule));
  }
  return out;
}

}  // namespace evenkeel::oper
