#include "contract/job/validate.h"

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <string_view>

#include "contract/job/defaults.h"
#include "contract/job/json_same.h"
#include "contract/job/rule_message.h"
#include "contract/job/schema.h"
#include "contract/job/suggest.h"
#include "contract/labels.h"

namespace evenkeel::contract {
namespace {

const char* type_words(FieldType type) {
  switch (type) {
    case FieldType::kObject:
    case FieldType::kMap:
    case FieldType::kOpen:
      return "an object";
    case FieldType::kArray:
      return "a list";
    case FieldType::kString:
      return "a text (in quotes if it looks like a number)";
    case FieldType::kInteger:
      return "a whole number";
    case FieldType::kNumber:
      return "a number";
    case FieldType::kBoolean:
      return "true or false";
    case FieldType::kQuantity:
      return "a quantity: a whole number, or a text such as \"500m\" or \"2Gi\"";
  }
  return "";
}

bool has_type(const Json& value, FieldType type) {
  switch (type) {
    case FieldType::kObject:
    case FieldType::kMap:
    case FieldType::kOpen:
      return value.is_object();
    case FieldType::kArray:
      return value.is_array();
    case FieldType::kString:
      return value.is_string();
    case FieldType::kInteger:
      return value.is_number_integer();  // 4.0 has become 4 with the defaults
    case FieldType::kNumber:
      return value.is_number();
    case FieldType::kBoolean:
      return value.is_boolean();
    case FieldType::kQuantity:
      return value.is_string() || value.is_number_integer();
  }
  return false;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Characters, not bytes, as the API server counts them.
std::size_t characters(const std::string& text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

const Json& member_or_null(const Json& object, const std::string& name) {
  static const Json kNull;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? kNull : *found;
}

// Compiling an expression costs more than judging a whole job: each pattern of the tree is compiled once.
using Patterns = std::map<std::string, std::regex>;

void compile_patterns(const Field& field, Patterns* patterns) {
  if (!field.pattern.empty()) patterns->try_emplace(field.pattern, field.pattern);
  for (const Field& member : field.fields) compile_patterns(member, patterns);
  for (const Field& item : field.items) compile_patterns(item, patterns);
}

bool matches(const std::string& text, const std::string& pattern) {
  static const Patterns kPatterns = [] {
    Patterns patterns;
    compile_patterns(spec_schema(), &patterns);
    return patterns;
  }();
  return std::regex_match(text, kPatterns.at(pattern));
}

// One walk over a value with its defaults filled in. Rules are asked only of values whose parts are all
// right, so they may rely on types and required members.
class Judge {
 public:
  std::vector<FieldError> take() { return std::move(errors_); }
  std::size_t count() const { return errors_.size(); }
  void fail(const std::string& path, const std::string& message) { errors_.push_back({path, message}); }

  // `old_value` null: there is none (creation, or an item of a list).
  void judge(const Field& field, const Json& value, const Json& old_value, const std::string& path);
  void ask(const std::vector<FieldRule>& rules, const Json& value, const Json& old_value,
           const std::string& path);

 private:
  void judge_object(const Field& field, const Json& value, const Json& old_value, const std::string& path);
  void judge_map(const Field& field, const Json& value, const std::string& path);
  void judge_array(const Field& field, const Json& value, const std::string& path);
  void judge_string(const Field& field, const std::string& text, const std::string& path);
  void judge_enum(const Field& field, const Json& value, const std::string& path);
  void judge_range(const Field& field, const Json& value, const std::string& path);
  void judge_size(const Field& field, std::size_t size, const std::string& path);
  void unknown_member(const Field& field, const std::string& name, const std::string& path);

  std::vector<FieldError> errors_;
};

bool is_built(const Field& field, const Json& value) {
  if (field.unbuilt_reason.empty()) return true;
  return std::any_of(field.built_values.begin(), field.built_values.end(),
                     [&](const Json& built) { return same_json(built, value) || built == value; });
}

void Judge::judge(const Field& field, const Json& value, const Json& old_value, const std::string& path) {
  if (field.forbidden) return fail(path, kForbiddenReason);
  if (value.is_null()) {
    if (!field.nullable)
      fail(path, std::string("null is not a value here; leave it out, or give ") + type_words(field.type));
    return;
  }
  if (!has_type(value, field.type))
    return fail(path, value_text(value) + " must be " + type_words(field.type));
  const std::size_t before = errors_.size();
  judge_enum(field, value, path);
  if (errors_.size() == before && !is_built(field, value)) {
    return fail(path, (value.is_structured() ? "" : value_text(value) + " ") + field.unbuilt_reason);
  }
  if (value.is_number()) judge_range(field, value, path);
  if (value.is_string()) judge_string(field, value.get_ref<const std::string&>(), path);
  if (field.type == FieldType::kObject) judge_object(field, value, old_value, path);
  if (field.type == FieldType::kMap) judge_map(field, value, path);
  if (field.type == FieldType::kArray) judge_array(field, value, path);
  if (errors_.size() == before) ask(field.rules, value, old_value, path);
}

void Judge::ask(const std::vector<FieldRule>& rules, const Json& value, const Json& old_value,
                const std::string& path) {
  for (const FieldRule& rule : rules) {
    if (rule.transition && old_value.is_null()) continue;
    if (rule.creation_only && !old_value.is_null()) continue;
    if (!rule.holds(value, old_value)) fail(path + rule.field_path, rule_message(rule, value));
  }
}

void Judge::judge_object(const Field& field, const Json& value, const Json& old_value,
                         const std::string& path) {
  for (const auto& [name, member] : value.items()) {
    const auto known = std::find_if(field.fields.begin(), field.fields.end(),
                                    [&](const Field& f) { return f.name == name; });
    if (known == field.fields.end()) {
      unknown_member(field, name, path);
    } else {
      judge(*known, member, member_or_null(old_value, name), path + "." + name);
    }
  }
  for (const Field& member : field.fields) {
    if (member.required && !value.contains(member.name))
      fail(path + "." + member.name,
           "is required" +
               (member.description.empty() ? " by Kubernetes; add it" : "; " + member.description));
  }
}

void Judge::unknown_member(const Field& field, const std::string& name, const std::string& path) {
  std::vector<std::string> names;
  for (const Field& member : field.fields) {
    if (!member.forbidden) names.push_back(member.name);
  }
  const std::string meant = nearest_name(name, names);
  fail(path + "." + cut_text(name), meant.empty()
                                        ? "is not a field of TrainingJob; known here: " + joined(names)
                                        : "is not a field of TrainingJob; did you mean " + meant + "?");
}

void Judge::judge_map(const Field& field, const Json& value, const std::string& path) {
  judge_size(field, value.size(), path);
  for (const auto& [name, member] : value.items())
    judge(field.items[0], member, Json(), path + "[" + cut_text(name) + "]");
}

void Judge::judge_array(const Field& field, const Json& value, const std::string& path) {
  judge_size(field, value.size(), path);
  std::set<std::string> keys;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::string at = path + "[" + std::to_string(i) + "]";
    judge(field.items[0], value[i], Json(), at);
    if (field.list_key.empty()) continue;
    const std::string key = base::string_at(value[i], field.list_key);
    if (!keys.insert(key).second)
      fail(at, field.list_key + " \"" + cut_text(key) + "\" appears twice; each may appear once");
  }
}

void Judge::judge_enum(const Field& field, const Json& value, const std::string& path) {
  if (field.enum_values.empty()) return;
  const std::string& given = value.get_ref<const std::string&>();
  if (std::find(field.enum_values.begin(), field.enum_values.end(), given) != field.enum_values.end()) return;
  const std::string meant = nearest_name(given, field.enum_values);
  fail(path, value_text(value) + " is not one of " + joined(field.enum_values) +
                 (meant.empty() ? "" : "; did you mean " + meant + "?"));
}

void Judge::judge_range(const Field& field, const Json& value, const std::string& path) {
  const double number = value.get<double>();
  const bool low = field.minimum && number < *field.minimum;
  const bool high = field.maximum && number > *field.maximum;
  if (!low && !high) return;
  fail(path, value_text(value) + (low ? " is too small" : " is too large") + "; use " +
                 number_text(*field.minimum) + ".." + number_text(*field.maximum));
}

void Judge::judge_size(const Field& field, std::size_t size, const std::string& path) {
  if (field.min_items && size < static_cast<std::size_t>(*field.min_items)) {
    fail(path, "has " + std::to_string(size) + " items; at least " + std::to_string(*field.min_items) +
                   " are needed");
  }
  if (field.max_items && size > static_cast<std::size_t>(*field.max_items)) {
    fail(path, "has " + std::to_string(size) + " items; at most " + std::to_string(*field.max_items) +
                   " are allowed");
  }
}

void Judge::judge_string(const Field& field, const std::string& text, const std::string& path) {
  const std::size_t length = characters(text);
  if (field.min_length && length < static_cast<std::size_t>(*field.min_length)) {
    return fail(path, "\"" + text + "\" is too short; at least " + std::to_string(*field.min_length) +
                          " characters are needed");
  }
  if (field.max_length && length > static_cast<std::size_t>(*field.max_length)) {
    return fail(path, "\"" + cut_text(text) + "\" has " + std::to_string(length) + " characters; at most " +
                          std::to_string(*field.max_length) + " are allowed");
  }
  if (field.pattern.empty() || matches(text, field.pattern)) return;
  fail(path, "\"" + cut_text(text) + "\" does not match " + field.pattern +
                 (field.description.empty() ? "" : "; " + field.description));
}

void judge_identity(const Json& object, Judge* judge) {
  const Json& version = member_or_null(object, "apiVersion");
  if (version != kApiVersion) judge->fail("apiVersion", value_text(version) + " must be " + kApiVersion);
  const Json& kind = member_or_null(object, "kind");
  if (kind != kKind) judge->fail("kind", value_text(kind) + " must be " + kKind);
  for (const auto& item : object.items()) {
    const std::vector<std::string> known{"apiVersion", "kind", "metadata", "spec", "status"};
    if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
    const std::string meant = nearest_name(item.key(), known);
    judge->fail(cut_text(item.key()),
                "is not a field of TrainingJob" + (meant.empty() ? "" : "; did you mean " + meant + "?"));
  }
}

void judge_metadata(const Json& object, const Json& old_object, Judge* judge) {
  const Json& metadata = base::child(object, "metadata");
  if (!metadata.is_object()) return judge->fail("metadata", "must be an object with a name");
  const auto name = metadata.find("name");
  if (name == metadata.end() || !name->is_string())
    return judge->fail("metadata.name", "is required and must be a text");
  for (const FieldRule& rule : object_rules()) {
    if (rule.creation_only && !old_object.is_null()) continue;
    if (!rule.holds(object, old_object)) judge->fail("metadata.name", rule_message(rule, object));
  }
}

Json spec_of(const Json& object) {
  return with_defaults(member_or_null(object, "spec"));
}

}  // namespace

std::vector<FieldError> validate_job(const Json& object, const Json& old_object) {
  Judge judge;
  if (!object.is_object()) {
    judge.fail("object", value_text(object) + " must be an object with apiVersion, kind, metadata and spec");
    return judge.take();
  }
  judge_identity(object, &judge);
  judge_metadata(object, old_object, &judge);
  if (!object.contains("spec")) {
    judge.fail("spec", "is required; " + spec_schema().description);
    return judge.take();
  }
  judge.judge(spec_schema(), spec_of(object), old_object.is_object() ? spec_of(old_object) : Json(), "spec");
  return judge.take();
}

std::vector<FieldError> validate_spec(const Json& spec) {
  Judge judge;
  judge.judge(spec_schema(), with_defaults(spec), Json(), "spec");
  return judge.take();
}

}  // namespace evenkeel::contract
