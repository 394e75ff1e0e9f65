#include "contract/job/rule_message.h"

#include <array>
#include <charconv>
#include <cmath>

namespace evenkeel::contract {
namespace {

constexpr std::size_t kMaxShown = 80;

const Json& at(const Json& self, std::string_view path) {
  if (path.empty()) return self;
  const auto dot = path.find('.');
  const Json& member = base::child(self, path.substr(0, dot));
  return dot == std::string_view::npos ? member : at(member, path.substr(dot + 1));
}

std::size_t length_of(const Json& value) {
  return value.is_string() ? value.get_ref<const std::string&>().size() : value.size();
}

std::string plain(const Json& value) {
  return value.is_string() ? cut_text(value.get<std::string>()) : cut_text(base::dump_json(value));
}

}  // namespace

std::string cut_text(std::string_view text) {
  if (text.size() <= kMaxShown) return std::string(text);
  std::size_t end = kMaxShown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string value_text(const Json& value) {
  if (value.is_string()) return "\"" + cut_text(value.get<std::string>()) + "\"";
  if (value.is_object()) return value.empty() ? "{}" : "an object";
  if (value.is_array()) return value.empty() ? "[]" : "a list";
  return cut_text(base::dump_json(value));
}

std::string number_text(double number) {
  std::array<char, 32> buffer;
  const bool whole = std::abs(number) < 9007199254740992.0 && number == std::floor(number);
  const auto [end, error] =
      whole ? std::to_chars(buffer.data(), buffer.data() + buffer.size(), static_cast<long long>(number))
            : std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  return std::string(buffer.data(), error == std::errc() ? end : buffer.data());
}

std::vector<MessagePiece> message_pieces(const std::string& message) {
  std::vector<MessagePiece> pieces;
  std::size_t begin = 0;
  while (begin < message.size()) {
    const std::size_t open = message.find('{', begin);
    const std::size_t close = open == std::string::npos ? open : message.find('}', open);
    if (close == std::string::npos) break;
    if (open > begin) pieces.push_back({message.substr(begin, open - begin), ""});
    std::string path = message.substr(open + 1, close - open - 1);
    const bool length = path.starts_with("#");
    pieces.push_back({"", length ? path.substr(1) : path,
                      length ? MessagePiece::Kind::kLength : MessagePiece::Kind::kValue});
    begin = close + 1;
  }
  if (begin < message.size()) pieces.push_back({message.substr(begin), ""});
  return pieces;
}

std::string rule_message(const FieldRule& rule, const Json& self) {
  std::string text;
  for (const MessagePiece& piece : message_pieces(rule.message)) {
    if (piece.kind == MessagePiece::Kind::kText) text += piece.text;
    if (piece.kind == MessagePiece::Kind::kValue) text += plain(at(self, piece.path));
    if (piece.kind == MessagePiece::Kind::kLength) text += std::to_string(length_of(at(self, piece.path)));
  }
  return text;
}

}  // namespace evenkeel::contract
