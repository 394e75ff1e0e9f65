// A checked decoder: reads members of a JSON object by name and type, remembers every error with its path and
// every key it was not asked for. One reader for a whole document; ask `finish()` at the end.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace evenkeel::base {

class JsonReader {
 public:
  // The largest whole number up to which all are exact for readers that hold doubles.
  static constexpr std::int64_t kMostExact = std::int64_t{1} << 53;

  // `name` starts every path in messages: "spec" or the file's name. `value` must outlive the reader.
  JsonReader(const Json& value, std::string name);
  JsonReader(JsonReader&&) noexcept;
  ~JsonReader();

  bool has(std::string_view key) const;
  // Absent or null: the fallback. Wrong type or out of range: the fallback, and an error is kept.
  std::string string(std::string_view key, std::string fallback = "");
  bool boolean(std::string_view key, bool fallback = false);
  std::int64_t integer(std::string_view key, std::int64_t fallback,
                       std::int64_t min = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t max = std::numeric_limits<std::int64_t>::max());
  // How many: 0 to kMostExact. Absent: 0.
  std::int64_t count(std::string_view key) { return integer(key, 0, 0, kMostExact); }
  // Finite numbers only.
  double number(std::string_view key, double fallback);
  // One of `names`, as its index; absent: fallback.
  int one_of(std::string_view key, const std::vector<std::string_view>& names, int fallback);
  // The value as it is, or null.
  const Json& any(std::string_view key);
  // As above, but an absent key is an error.
  JsonReader& require(std::string_view key);

  // The member object, or an empty one. Errors go to the same list.
  JsonReader object(std::string_view key);
  // One reader for each element; at most `max_items`, more is an error.
  std::vector<JsonReader> array(std::string_view key, std::size_t max_items = 10000);
  std::vector<std::string> strings(std::string_view key, std::size_t max_items = 10000);
  // Fixed list of numbers.
  std::vector<double> numbers(std::string_view key, std::size_t max_items = 10000);

  // Keeps an error of the caller's own under the path of `key`; an empty key is the object itself.
  void fail(std::string_view key, std::string what);
  // Keys nobody asked for become errors, unless the object was declared open.
  void allow_unknown();
  const std::string& path() const;

  // All errors in one, "; " between them, kInvalidInput. To be called on the root reader, after its children
  // died.
  Status finish();

 private:
  struct Shared;
  JsonReader(const Json* value, std::string path, std::shared_ptr<Shared> shared);
  const Json* find(std::string_view key);
  const Json* list(std::string_view key, std::size_t max_items);
  std::string path_of(std::string_view key) const;
  std::string path_of_item(std::string_view key, std::size_t index) const;
  void check_unknown();

  const Json* value_;
  std::string path_;
  std::shared_ptr<Shared> shared_;
  std::vector<std::string> seen_;
  bool open_ = false;
};

}  // namespace evenkeel::base
