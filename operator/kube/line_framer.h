// Cuts a byte stream into lines, whatever pieces it arrives in. Used by the watch transport. Pure; one
// thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace evenkeel::oper {

class LineFramer {
 public:
  explicit LineFramer(std::size_t max_line_bytes) : max_line_bytes_(max_line_bytes) {}

  // REQUIRES: every line of earlier pieces has been taken, or memory grows by what was left.
  void add(std::string_view piece) { buffer_.append(piece); }

  // The next complete line without "\n" or "\r\n"; empty lines are skipped. Nothing: more bytes are needed.
  std::optional<std::string> next();

  // A line, complete or not, is longer than the cap: the stream cannot be trusted any more.
  bool overflowed() const { return overflowed_; }
  std::size_t buffered_bytes() const { return buffer_.size() - start_; }

 private:
  std::size_t max_line_bytes_;
  std::string buffer_;
  std::size_t start_ = 0;  // first byte not handed out
  std::size_t scanned_ =
      0;  // no line end in [start_, scanned_): a long line is searched once, not once a piece
  bool overflowed_ = false;
};

}  // namespace evenkeel::oper
