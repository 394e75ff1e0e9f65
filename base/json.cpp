#include "base/json.h"

#include <limits>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

namespace evenkeel::base {
namespace {

constexpr std::size_t kShownBytes = 160;  // of a library's message: the token it quotes may be megabytes long

Error at_byte(std::size_t offset, const std::string& what) {
  return Error{ErrorCode::kInvalidInput, "not valid JSON at byte " + std::to_string(offset) + ": " + what};
}

// Feeds the parser and remembers how far it has read: its events carry no position.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** seen) : at_(at), seen_(seen) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *seen_ = ++at_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** seen_;
};

// Builds the value from the parser's events. Members are appended, not inserted: the ordered object's own
// insertion looks for the key from the front each time, which a text of 4 MiB would turn into hours.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view text, int max_depth)
      : begin_(text.data()), seen_(text.data()), max_depth_(max_depth) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return fail("binary value"); }

  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Level& level = levels_.back();
    if (is_known(level, name))
      return fail("key \"" + name.substr(0, kShownBytes) + "\" is there twice in one object");
    auto& members = level.value->get_ref<Json::object_t&>();
    static_cast<Json::object_t::Container&>(members).emplace_back(std::move(name), nullptr);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const Json::exception& exception) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error ...": the end is what
    // is new.
    std::string what = exception.what();
    const std::size_t column = what.find("column");
    const std::size_t start = column == std::string::npos ? what.find("] ") : what.find(": ", column);
    if (start != std::string::npos) what.erase(0, start + 2);
    if (what.size() > kShownBytes) what.resize(kShownBytes);
    error_ = at_byte(position == 0 ? 0 : position - 1, what);
    return false;
  }

  const CountingIterator first() { return CountingIterator(begin_, &seen_); }
  CountingIterator last(std::size_t size) { return CountingIterator(begin_ + size, &seen_); }
  Json&& take() { return std::move(root_); }
  const Error& error() const { return error_; }

 private:
  struct Level {
    Json* value;
    std::unique_ptr<std::unordered_set<std::string>> names;  // made when the object grows
  };

  static bool is_known(Level& level, const std::string& name) {
    constexpr std::size_t kScanned = 16;  // up to here a scan is faster than a set
    const auto& members = level.value->get_ref<const Json::object_t&>();
    if (members.size() < kScanned) {
      for (const auto& member : members) {
        if (member.first == name) return true;
      }
      return false;
    }
    if (!level.names) {
      level.names = std::make_unique<std::unordered_set<std::string>>();
      for (const auto& member : members) level.names->insert(member.first);
    }
    return !level.names->insert(name).second;
  }

  template <class Value>
  bool put(Value&& value) {
    place(Json(std::forward<Value>(value)));
    return true;
  }

  // Elements move when their array grows, but only the last one of each open level is pointed at, and the
  // array of an open level does not grow before that level's child is closed.
  Json* place(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *levels_.back().value;
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    Json& slot = parent.get_ref<Json::object_t&>().back().second;
    slot = std::move(value);
    return &slot;
  }

  bool open(Json empty) {
    if (static_cast<int>(levels_.size()) >= max_depth_) {
      return fail("nested deeper than " + std::to_string(max_depth_) + " levels");
    }
    Json* value = place(std::move(empty));
    levels_.push_back({value, nullptr});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  bool fail(const std::string& what) {
    error_ = at_byte(static_cast<std::size_t>(seen_ - begin_), what);
    return false;
  }

  const char* begin_;
  const char* seen_;
  const int max_depth_;
  Json root_;
  std::vector<Level> levels_;
  Error error_;
};

// Null where there is no such member.
const Json* member(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  for (const auto& [name, value] : object.get_ref<const Json::object_t&>()) {
    if (name == key) return value.is_null() ? nullptr : &value;
  }
  return nullptr;
}

}  // namespace

const Json& empty_object() {
  static const Json empty = Json::object();
  return empty;
}

Result<Json> parse_json(std::string_view text, JsonLimits limits) {
  if (text.size() > limits.max_bytes) {
    return Error{ErrorCode::kInvalidInput, "JSON text of " + std::to_string(text.size()) +
                                               " bytes is longer than " + std::to_string(limits.max_bytes) +
                                               " bytes"};
  }
  // The parser takes a NUL for the end and would let anything follow it.
  const std::size_t nul = text.find('\0');
  if (nul != std::string_view::npos) return at_byte(nul, "a NUL byte");
  Builder builder(text, limits.max_depth);
  try {
    if (!Json::sax_parse(builder.first(), builder.last(text.size()), &builder)) return builder.error();
  } catch (const std::exception& exception) {  // no memory
    return Error{ErrorCode::kInternal, std::string("parsing JSON: ") + exception.what()};
  }
  return builder.take();
}

std::string dump_json(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string string_at(const Json& object, std::string_view key, std::string_view fallback) {
  const Json* value = member(object, key);
  return value != nullptr && value->is_string() ? value->get_ref<const std::string&>()
                                                : std::string(fallback);
}

std::int64_t int_at(const Json& object, std::string_view key, std::int64_t fallback) {
  const Json* value = member(object, key);
  if (value == nullptr || !value->is_number_integer()) return fallback;
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value->is_number_unsigned() && value->get<std::uint64_t>() > kMax) return fallback;
  return value->get<std::int64_t>();
}

double double_at(const Json& object, std::string_view key, double fallback) {
  const Json* value = member(object, key);
  return value != nullptr && value->is_number() ? value->get<double>() : fallback;
}

bool bool_at(const Json& object, std::string_view key, bool fallback) {
  const Json* value = member(object, key);
  return value != nullptr && value->is_boolean() ? value->get<bool>() : fallback;
}

const Json& child(const Json& object, std::string_view key) {
  const Json* value = member(object, key);
  return value != nullptr ? *value : empty_object();
}

const Json& at_path(const Json& object, std::initializer_list<std::string_view> path) {
  const Json* at = &object;
  for (const std::string_view key : path) at = &child(*at, key);
  return *at;
}

}  // namespace evenkeel::base
