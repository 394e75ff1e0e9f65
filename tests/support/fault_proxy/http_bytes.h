// HTTP/1.1 as bytes: heads and bodies as they come in, of any length of pieces. Pure. Used by the proxy for both of its
// sides; it must see every byte, because it is to break the connection at any of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace evenkeel::support {

struct HttpHead {
  std::string first_line;  // "GET /x HTTP/1.1" or "HTTP/1.1 200 OK"
  std::vector<std::pair<std::string, std::string>> fields;  // in order, as written

  std::string method() const;  // of a request
  std::string target() const;
  int status() const;  // of an answer
  // The value of the first field of that name (given in lower case), or nothing.
  std::optional<std::string> field(std::string_view lower_name) const;
  void remove_field(std::string_view lower_name);
  std::string text() const;  // with the empty line
};

// Takes a whole head off the front of `bytes`; nothing while it is incomplete. Over 64 KiB or not HTTP: an error.
base::Result<std::optional<HttpHead>> take_head(std::string& bytes);

// The body behind a head: by Content-Length, by chunks, or until the connection closes.
class BodyReader {
 public:
  // `is_request`: a request without a length has no body. `no_body`: the answer to HEAD, 204 and 304.
  static base::Result<BodyReader> of(const HttpHead& head, bool is_request, bool no_body = false);
  // Takes what it can off the front of `bytes` and returns it, without the framing.
  base::Result<std::string> take(std::string& bytes);
  bool done() const { return state_ == State::kDone; }
  // The connection has closed: an error if that cut the body off.
  base::Status closed();

 private:
  enum class State { kLength, kChunkSize, kChunkEnd, kTrailer, kUntilClose, kDone };
  base::Result<bool> take_line(std::string& bytes, std::string& line);
  void take_data(std::string& bytes, std::string& out);
  State state_ = State::kDone;
  bool chunked_ = false;
  std::uint64_t left_ = 0;
};

std::string as_chunk(std::string_view bytes);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace evenkeel::support
