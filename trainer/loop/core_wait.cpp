#include "trainer/loop/core_wait.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdint>

namespace evenkeel::trainer {

std::optional<double> core_wait_of(std::string_view schedstat) {
  std::uint64_t ran = 0, waited = 0;
  const char* const end = schedstat.data() + schedstat.size();
  const auto first = std::from_chars(schedstat.data(), end, ran);
  if (first.ec != std::errc() || ran == 0 || first.ptr == end) return std::nullopt;
  if (std::from_chars(first.ptr + 1, end, waited).ec != std::errc()) return std::nullopt;
  return static_cast<double>(waited) * 1e-9;
}

// Kept open: it is read twice in each step.
CoreWait::CoreWait() : fd_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}

CoreWait::~CoreWait() {
  if (fd_ >= 0) ::close(fd_);
}

double CoreWait::seconds() const {
  if (fd_ < 0) return 0;
  std::array<char, 96> text;
  const ssize_t got = ::pread(fd_, text.data(), text.size(), 0);
  if (got <= 0) return 0;
  return core_wait_of({text.data(), static_cast<std::size_t>(got)}).value_or(0);
}

}  // namespace evenkeel::trainer
