#include "operator/kube/line_framer.h"

#include <algorithm>

namespace evenkeel::oper {

std::optional<std::string> LineFramer::next() {
  while (!overflowed_) {
    const std::size_t end = buffer_.find('\n', std::max(start_, scanned_));
    if (end == std::string::npos) {
      overflowed_ = buffered_bytes() > max_line_bytes_;
      buffer_.erase(0, start_);
      start_ = 0;
      scanned_ = buffer_.size();
      // One large event must not hold its memory for the life of the stream.
      if (buffer_.empty() && buffer_.capacity() > (64u << 10)) buffer_.shrink_to_fit();
      return std::nullopt;
    }
    std::size_t length = end - start_;
    if (length > max_line_bytes_) {
      overflowed_ = true;
      return std::nullopt;
    }
    if (length > 0 && buffer_[end - 1] == '\r') --length;
    std::string line = buffer_.substr(start_, length);
    start_ = scanned_ = end + 1;
    if (!line.empty()) return line;
  }
  return std::nullopt;
}

}  // namespace evenkeel::oper
