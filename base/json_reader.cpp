#include "base/json_reader.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

namespace evenkeel::base {
namespace {

constexpr std::size_t kMaxErrors = 20;         // a file of another kind would otherwise fill a screen
constexpr std::size_t kMaxShownBytes = 60;     // of an offending value
constexpr std::size_t kMaxComparedBytes = 64;  // of names, for "did you mean"

const Json& null_value() {
  static const Json null;
  return null;
}

std::string shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string text = dump_json(value);
  if (text.size() <= kMaxShownBytes) return text;
  text.resize(kMaxShownBytes);
  // A cut in the middle of a character would not be text.
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80) text.pop_back();
  if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xc0) text.pop_back();
  return text + "...";
}

std::string wrong(std::string_view wanted, const Json& value) {
  return "must be " + std::string(wanted) + ", is " + shown(value);
}

// Levenshtein distance without regard to case.
int distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 0; i < a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i) + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const bool same =
          std::tolower(static_cast<unsigned char>(a[i])) == std::tolower(static_cast<unsigned char>(b[j]));
      const int replaced = diagonal + (same ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row[b.size()];
}

// ", did you mean \"replicas\"?" or nothing. A name of three letters is two changes away from every other.
template <class Names>
std::string suggestion(std::string_view name, const Names& names) {
  if (name.size() > kMaxComparedBytes) return "";
  const int limit = name.size() <= 3 ? 1 : 2;
  std::string_view best;
  int best_distance = limit + 1;
  for (const auto& candidate : names) {
    const int d = distance(name, std::string_view(candidate).substr(0, kMaxComparedBytes));
    if (d < best_distance) {
      best = candidate;
      best_distance = d;
    }
  }
  return best_distance > limit ? "" : ", did you mean \"" + std::string(best) + "\"?";
}

}  // namespace

struct JsonReader::Shared {
  std::vector<std::string> errors;
  std::size_t dropped = 0;

  void add(const std::string& path, const std::string& what) {
    if (errors.size() >= kMaxErrors) {
      ++dropped;
      return;
    }
    errors.push_back(path.empty() ? what : path + ": " + what);
  }
};

JsonReader::JsonReader(const Json& value, std::string name)
    : JsonReader(&value, std::move(name), std::make_shared<Shared>()) {}

JsonReader::JsonReader(const Json* value, std::string path, std::shared_ptr<Shared> shared)
    : value_(value), path_(std::move(path)), shared_(std::move(shared)) {
  if (value_->is_object()) return;
  shared_->add(path_, wrong("an object", *value_));
  value_ = &empty_object();
}

JsonReader::JsonReader(JsonReader&& other) noexcept
    : value_(std::exchange(other.value_, nullptr)),
      path_(std::move(other.path_)),
      shared_(std::move(other.shared_)),
      seen_(std::move(other.seen_)),
      open_(other.open_) {}

JsonReader::~JsonReader() {
  check_unknown();
}

void JsonReader::check_unknown() {
  if (value_ == nullptr || open_) return;
  for (const auto& [name, value] : value_->items()) {
    if (std::find(seen_.begin(), seen_.end(), name) != seen_.end()) continue;
    shared_->add(path_of(name), "unknown field" + suggestion(name, seen_));
  }
  open_ = true;  // once
}

std::string JsonReader::path_of(std::string_view key) const {
  const std::string shown_key(key.substr(0, kMaxComparedBytes));
  if (key.empty() || path_.empty()) return path_.empty() ? shown_key : path_;
  return path_ + "." + shown_key;
}

const Json* JsonReader::find(std::string_view key) {
  if (std::find(seen_.begin(), seen_.end(), key) == seen_.end()) seen_.emplace_back(key);
  const auto& members = value_->get_ref<const Json::object_t&>();
  for (const auto& [name, value] : members) {
    if (name == key) return value.is_null() ? nullptr : &value;
  }
  return nullptr;
}

bool JsonReader::has(std::string_view key) const {
  for (const auto& [name, value] : value_->get_ref<const Json::object_t&>()) {
    if (name == key) return !value.is_null();
  }
  return false;
}

std::string JsonReader::string(std::string_view key, std::string fallback) {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (value->is_string()) return value->get<std::string>();
  fail(key, wrong("text", *value));
  return fallback;
}

bool JsonReader::boolean(std::string_view key, bool fallback) {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  fail(key, wrong("true or false", *value));
  return fallback;
}

std::int64_t JsonReader::integer(std::string_view key, std::int64_t fallback, std::int64_t min,
                                 std::int64_t max) {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_number_integer()) {
    fail(key, wrong("a whole number", *value));
    return fallback;
  }
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool fits = !value->is_number_unsigned() || value->get<std::uint64_t>() <= kMax;
  const std::int64_t number = fits ? value->get<std::int64_t>() : 0;
  if (fits && number >= min && number <= max) return number;
  const bool open_above = max == std::numeric_limits<std::int64_t>::max();
  const bool open_below = min == std::numeric_limits<std::int64_t>::min();
  std::string range = open_above && !open_below ? "at least " + std::to_string(min)
                      : open_below && !open_above
                          ? "at most " + std::to_string(max)
                          : "between " + std::to_string(min) + " and " + std::to_string(max);
  fail(key, wrong(range, *value));
  return fallback;
}

double JsonReader::number(std::string_view key, double fallback) {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (value->is_number() && std::isfinite(value->get<double>())) return value->get<double>();
  fail(key, wrong("a finite number", *value));
  return fallback;
}

int JsonReader::one_of(std::string_view key, const std::vector<std::string_view>& names, int fallback) {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (value->is_string()) {
    const auto& text = value->get_ref<const std::string&>();
    const auto found = std::find(names.begin(), names.end(), text);
    if (found != names.end()) return static_cast<int>(found - names.begin());
  }
  std::string wanted = names.size() == 1 ? "" : "one of ";
  for (std::size_t i = 0; i < names.size(); ++i) wanted += (i == 0 ? "" : ", ") + std::string(names[i]);
  const std::string hint = value->is_string() ? suggestion(value->get_ref<const std::string&>(), names) : "";
  fail(key, wrong(wanted, *value) + hint);
  return fallback;
}

const Json& JsonReader::any(std::string_view key) {
  const Json* value = find(key);
  return value != nullptr ? *value : null_value();
}

JsonReader& JsonReader::require(std::string_view key) {
  if (find(key) == nullptr) fail(key, "is required, but it is not there");
  return *this;
}

JsonReader JsonReader::object(std::string_view key) {
  const Json* value = find(key);
  return JsonReader(value != nullptr ? value : &empty_object(), path_of(key), shared_);
}

// The member as a list of at most `max_items`; null when absent or wrong, which is then in the errors.
const Json* JsonReader::list(std::string_view key, std::size_t max_items) {
  const Json* value = find(key);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) {
    fail(key, wrong("a list", *value));
    return nullptr;
  }
  if (value->size() > max_items) {
    fail(key, "has " + std::to_string(value->size()) + " items, at most " + std::to_string(max_items) +
                  " are allowed");
    return nullptr;
  }
  return value;
}

std::string JsonReader::path_of_item(std::string_view key, std::size_t index) const {
  return path_of(key) + "[" + std::to_string(index) + "]";
}

std::vector<JsonReader> JsonReader::array(std::string_view key, std::size_t max_items) {
  std::vector<JsonReader> readers;
  const Json* items = list(key, max_items);
  if (items == nullptr) return readers;
  readers.reserve(items->size());
  for (std::size_t i = 0; i < items->size(); ++i) {
    readers.push_back(JsonReader(&(*items)[i], path_of_item(key, i), shared_));
  }
  return readers;
}

std::vector<std::string> JsonReader::strings(std::string_view key, std::size_t max_items) {
  std::vector<std::string> texts;
  const Json* items = list(key, max_items);
  if (items == nullptr) return texts;
  for (std::size_t i = 0; i < items->size(); ++i) {
    const Json& item = (*items)[i];
    if (item.is_string()) {
      texts.push_back(item.get<std::string>());
    } else {
      shared_->add(path_of_item(key, i), wrong("text", item));
    }
  }
  return texts;
}

std::vector<double> JsonReader::numbers(std::string_view key, std::size_t max_items) {
  std::vector<double> values;
  const Json* items = list(key, max_items);
  if (items == nullptr) return values;
  for (std::size_t i = 0; i < items->size(); ++i) {
    const Json& item = (*items)[i];
    if (item.is_number() && std::isfinite(item.get<double>())) {
      values.push_back(item.get<double>());
    } else {
      shared_->add(path_of_item(key, i), wrong("a finite number", item));
    }
  }
  return values;
}

void JsonReader::fail(std::string_view key, std::string what) {
  shared_->add(path_of(key), what);
}

void JsonReader::allow_unknown() {
  open_ = true;
}

const std::string& JsonReader::path() const {
  return path_;
}

Status JsonReader::finish() {
  check_unknown();
  if (shared_->errors.empty()) return {};
  std::string message;
  for (const std::string& error : shared_->errors) message += (message.empty() ? "" : "; ") + error;
  if (shared_->dropped > 0) message += "; and " + std::to_string(shared_->dropped) + " more";
  return Error{ErrorCode::kInvalidInput, message};
}

}  // namespace evenkeel::base
