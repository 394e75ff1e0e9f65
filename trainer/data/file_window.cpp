#include "trainer/data/file_window.h"

#include <algorithm>
#include <cassert>

namespace evenkeel::trainer {
namespace {

// Read ahead where records lie close together; far apart, the bytes between two headers are not wanted.
constexpr std::size_t kAhead = 16 << 10;

}  // namespace

base::Result<std::string_view> FileWindow::view(std::uint64_t offset, std::size_t count) {
  assert(offset <= size_ && count <= size_ - offset);
  const bool inside =
      offset >= start_ && offset - start_ <= buffer_.size() && count <= buffer_.size() - (offset - start_);
  if (!inside) {
    const bool near = offset >= start_ && offset - start_ < kAhead;
    const std::uint64_t wanted = std::max<std::uint64_t>(count, near ? kAhead : 0);
    const auto bytes = static_cast<std::size_t>(std::min(wanted, size_ - offset));
    EVENKEEL_ASSIGN(buffer_, files_->read_range(path_, offset, bytes));
    start_ = offset;
  }
  return std::string_view(buffer_).substr(static_cast<std::size_t>(offset - start_), count);
}

}  // namespace evenkeel::trainer
