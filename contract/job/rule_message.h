// Values as they appear in messages, and the messages of rules with their {placeholders} filled in. Pure.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "contract/job/schema.h"

namespace evenkeel::contract {

// At most 80 bytes of a text, cut between characters, "..." behind a cut one.
std::string cut_text(std::string_view text);
// A value for a message: texts in quotes, cut.
std::string value_text(const Json& value);
// 4096, 0.75, 1e+09
std::string number_text(double number);

// A message in pieces: plain text, or a placeholder {path} / {#path} (length), {} for the value itself.
struct MessagePiece {
  std::string text;  // of a plain piece
  std::string path;  // of a placeholder, e.g. metadata.name
  enum class Kind { kText, kValue, kLength } kind = Kind::kText;
};
std::vector<MessagePiece> message_pieces(const std::string& message);

std::string rule_message(const FieldRule& rule, const Json& self);

}  // namespace evenkeel::contract
