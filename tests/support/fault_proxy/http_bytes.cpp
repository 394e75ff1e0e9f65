#include "tests/support/fault_proxy/http_bytes.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>

namespace evenkeel::support {
namespace {

constexpr std::size_t kMaxHeadBytes = 64u << 10;
constexpr std::size_t kMaxLineBytes = 4096;  // of a chunk's size

base::Error damaged(std::string message) {
  return {base::ErrorCode::kInvalidInput, std::move(message)};
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string word(const std::string& line, int index) {
  std::size_t begin = 0;
  for (; index > 0; --index) {
    begin = line.find(' ', begin);
    if (begin == std::string::npos) return "";
    ++begin;
  }
  return line.substr(begin, line.find(' ', begin) - begin);
}

std::optional<std::uint64_t> number(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string HttpHead::method() const {
  return word(first_line, 0);
}
std::string HttpHead::target() const {
  return word(first_line, 1);
}
int HttpHead::status() const {
  return static_cast<int>(number(word(first_line, 1), 10).value_or(0));
}

std::optional<std::string> HttpHead::field(std::string_view lower_name) const {
  for (const auto& [name, value] : fields)
    if (lower(name) == lower_name) return value;
  return std::nullopt;
}

void HttpHead::remove_field(std::string_view lower_name) {
  std::erase_if(fields, [&](const auto& one) { return lower(one.first) == lower_name; });
}

std::string HttpHead::text() const {
  std::string out = first_line + "\r\n";
  for (const auto& [name, value] : fields) out += name + ": " + value + "\r\n";
  return out + "\r\n";
}

base::Result<std::optional<HttpHead>> take_head(std::string& bytes) {
  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == std::string::npos && bytes.size() <= kMaxHeadBytes) return std::optional<HttpHead>();
  if (end == std::string::npos || end > kMaxHeadBytes) return damaged("a head of more than 64 KiB");
  HttpHead head;
  std::string_view rest(bytes.data(), end + 2);
  while (!rest.empty()) {
    const std::size_t stop = rest.find("\r\n");
    const std::string_view line = rest.substr(0, stop);
    rest.remove_prefix(stop + 2);
    if (head.first_line.empty()) {
      head.first_line = line;
      continue;
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) return damaged("a header line without a name: " + std::string(line));
    head.fields.emplace_back(line.substr(0, colon), trimmed(line.substr(colon + 1)));
  }
  if (head.first_line.find("HTTP/1.") == std::string::npos) return damaged("no HTTP/1: '" + head.first_line + "'");
  bytes.erase(0, end + 4);
  return std::optional<HttpHead>(std::move(head));
}

base::Result<BodyReader> BodyReader::of(const HttpHead& head, bool is_request, bool no_body) {
  BodyReader reader;
  if (no_body) return reader;
  const auto coding = head.field("transfer-encoding");
  if (coding && lower(*coding) == "chunked") {
    reader.chunked_ = true;
    reader.state_ = State::kChunkSize;
    return reader;
  }
  if (coding) return damaged("transfer-encoding '" + *coding + "' is not known");
  if (const auto length = head.field("content-length")) {
    const auto bytes = number(*length, 10);
    if (!bytes) return damaged("content-length '" + *length + "' is no number");
    reader.left_ = *bytes;
    reader.state_ = *bytes == 0 ? State::kDone : State::kLength;
    return reader;
  }
  reader.state_ = is_request ? State::kDone : State::kUntilClose;
  return reader;
}

// False while the line is incomplete.
base::Result<bool> BodyReader::take_line(std::string& bytes, std::string& line) {
  const std::size_t end = bytes.find("\r\n");
  if (end == std::string::npos && bytes.size() <= kMaxLineBytes) return false;
  if (end == std::string::npos || end > kMaxLineBytes) return damaged("a chunk's size of more than 4096 characters");
  line = bytes.substr(0, end);
  bytes.erase(0, end + 2);
  return true;
}

void BodyReader::take_data(std::string& bytes, std::string& out) {
  const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
  out.append(bytes, 0, count);
  bytes.erase(0, count);
  left_ -= count;
  if (left_ == 0) state_ = chunked_ ? State::kChunkEnd : State::kDone;
}

base::Result<std::string> BodyReader::take(std::string& bytes) {
  std::string out, line;
  while (!bytes.empty() && state_ != State::kDone) {
    if (state_ == State::kUntilClose) {
      out += bytes;
      bytes.clear();
    } else if (state_ == State::kLength) {
      take_data(bytes, out);
    } else {
      EVENKEEL_ASSIGN(const bool whole, take_line(bytes, line));
      if (!whole) break;
      if (state_ == State::kChunkEnd) {
        if (!line.empty()) return damaged("a chunk that is longer than its size");
        state_ = State::kChunkSize;
      } else if (state_ == State::kTrailer) {
        if (line.empty()) state_ = State::kDone;
      } else {
        const auto size = number(trimmed(std::string_view(line).substr(0, line.find(';'))), 16);
        if (!size) return damaged("a chunk's size '" + line + "' is no number");
        left_ = *size;
        state_ = left_ == 0 ? State::kTrailer : State::kLength;
      }
    }
  }
  return out;
}

base::Status BodyReader::closed() {
  if (state_ == State::kUntilClose) state_ = State::kDone;
  if (state_ == State::kDone) return {};
  return base::Error{base::ErrorCode::kUnavailable, "closed in the middle of a body"};
}

std::string as_chunk(std::string_view bytes) {
  char size[20];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return size + std::string(bytes) + "\r\n";
}

}  // namespace evenkeel::support
