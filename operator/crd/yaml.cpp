#include "operator/crd/yaml.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace evenkeel::oper {
namespace {

using base::Json;

constexpr std::size_t kMaxFlow = 180;  // shorter lines would cost a third of the file in indentation

// Words that some YAML reader takes for something else than text, whatever their case (Off is false in
// YAML 1.1).
constexpr std::array<std::string_view, 10> kNotText{"true", "false", "null", "yes", "no",
                                                    "on",   "off",   "y",    "n",   "nan"};

bool is_plain_word(const std::string& text) {
  if (text.empty() || !std::isalpha(static_cast<unsigned char>(text[0]))) return false;
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (std::find(kNotText.begin(), kNotText.end(), lower) != kNotText.end()) return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '-' || c == '_' || c == '/';
  });
}

// A JSON text is also a YAML one.
std::string scalar(const Json& value) {
  if (value.is_string() && is_plain_word(value.get_ref<const std::string&>()))
    return value.get<std::string>();
  return base::dump_json(value);
}

// {type: string, maxLength: 63}
std::string flow(const Json& value) {
  if (!value.is_structured()) return scalar(value);
  std::string out;
  for (const auto& [key, member] : value.items()) {
    out += out.empty() ? "" : ", ";
    out += value.is_object() ? scalar(Json(key)) + ": " + flow(member) : flow(member);
  }
  return value.is_object() ? "{" + out + "}" : "[" + out + "]";
}

// Small: one line.
bool fits_flow(const Json& value) {
  return !value.is_structured() || flow(value).size() <= kMaxFlow;
}

void write(const Json& value, int indent, std::string* out);

void write_object(const Json& value, int indent, std::string* out) {
  for (const auto& [key, member] : value.items()) {
    // The first key of a list's item stands behind its dash.
    if (out->empty() || out->back() == '\n') out->append(indent, ' ');
    *out += scalar(Json(key)) + ":";
    if (fits_flow(member)) {
      *out += " " + flow(member) + "\n";
      continue;
    }
    *out += "\n";
    write(member, member.is_array() ? indent : indent + 2, out);
  }
}

void write_array(const Json& value, int indent, std::string* out) {
  for (const Json& item : value) {
    out->append(indent, ' ');
    *out += "- ";
    if (item.is_object() && !fits_flow(item)) {
      write(item, indent + 2, out);
    } else {
      *out += flow(item) + "\n";
    }
  }
}

void write(const Json& value, int indent, std::string* out) {
  if (value.is_object()) return write_object(value, indent, out);
  write_array(value, indent, out);
}

}  // namespace

std::string to_yaml(const Json& value) {
  std::string out;
  if (fits_flow(value)) return flow(value) + "\n";
  write(value, 0, &out);
  return out;
}

}  // namespace evenkeel::oper
