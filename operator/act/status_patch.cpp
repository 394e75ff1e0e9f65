#include "operator/act/status_patch.h"

#include <string>

namespace evenkeel::oper {
namespace {

using base::Json;

constexpr std::size_t kShortMessageBytes = 128;
constexpr std::size_t kFewReplicas = 8;

// Cut at a character's first byte, so that valid UTF-8 stays valid.
void shorten(std::string& text) {
  if (text.size() <= kShortMessageBytes) return;
  std::size_t end = kShortMessageBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
}

void cut_texts(Json& value) {
  if (value.is_string()) {
    shorten(value.get_ref<std::string&>());
  } else if (value.is_structured()) {
    for (Json& item : value) cut_texts(item);
  }
}

}  // namespace

Json merge_difference(const Json& from, const Json& to) {
  Json patch = Json::object();
  for (const auto& [key, value] : to.items()) {
    const auto old = from.is_object() ? from.find(key) : from.end();
    const bool there = from.is_object() && old != from.end();
    // A null in a merge patch means "remove": writing one where nothing is would differ for ever.
    if (value.is_null()) {
      if (there && !old->is_null()) patch[key] = Json();
    } else if (there && value.is_object() && old->is_object()) {
      Json inner = merge_difference(*old, value);
      if (!inner.empty()) patch[key] = std::move(inner);
    } else if (!there || *old != value) {
      patch[key] = value;
    }
  }
  if (from.is_object())
    for (const auto& [key, value] : from.items())
      if (!to.contains(key) && !value.is_null()) patch[key] = Json();
  return patch;
}

Json shorter_status(const Json& status) {
  Json result = status;
  const auto replicas = result.find("replicas");
  if (replicas != result.end() && replicas->is_array() && replicas->size() > kFewReplicas)
    replicas->erase(replicas->begin() + kFewReplicas, replicas->end());
  cut_texts(result);
  return result;
}

}  // namespace evenkeel::oper
