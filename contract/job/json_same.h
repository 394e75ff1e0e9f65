// Equality of JSON values as the API server sees it: the order of an object's members means nothing. Pure.
#pragma once

#include "base/json.h"

namespace evenkeel::contract {

inline bool same_json(const base::Json& a, const base::Json& b) {
  if (a.is_object() && b.is_object()) {
    if (a.size() != b.size()) return false;
    for (const auto& [key, value] : a.items()) {
      const auto other = b.find(key);
      if (other == b.end() || !same_json(value, *other)) return false;
    }
    return true;
  }
  if (a.is_array() && b.is_array()) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!same_json(a[i], b[i])) return false;
    }
    return true;
  }
  return a == b;
}

}  // namespace evenkeel::contract
