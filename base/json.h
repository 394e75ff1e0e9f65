// JSON values, parsed with limits before anything is allocated for them. Wraps nlohmann-json so that its
// exceptions stop here. Values; no thread rules.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace evenkeel::base {

// Keys keep the order in which they were written: manifests and reports read as their authors meant them.
using Json = nlohmann::ordered_json;

struct JsonLimits {
  std::size_t max_bytes = 4u << 20;
  int max_depth = 64;
};

// Duplicate keys, trailing text, invalid UTF-8, too deep, too long: kInvalidInput, message with the byte
// offset.
Result<Json> parse_json(std::string_view text, JsonLimits limits = {});

// Never throws: invalid UTF-8 is replaced. indent < 0: one line.
std::string dump_json(const Json& value, int indent = -1);

// Checked reads for optional members: the fallback when the key is absent or null or of another type.
std::string string_at(const Json& object, std::string_view key, std::string_view fallback = "");
std::int64_t int_at(const Json& object, std::string_view key, std::int64_t fallback = 0);
double double_at(const Json& object, std::string_view key, double fallback = 0);
bool bool_at(const Json& object, std::string_view key, bool fallback = false);
// An empty object when absent.
const Json& child(const Json& object, std::string_view key);
const Json& empty_object();
// By JSON pointer-like path of plain keys: at_path(pod, {"metadata", "name"}).
const Json& at_path(const Json& object, std::initializer_list<std::string_view> path);

}  // namespace evenkeel::base
