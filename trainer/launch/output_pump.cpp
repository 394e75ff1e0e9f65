#include "trainer/launch/output_pump.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace evenkeel::trainer {
namespace {

// A line that does not end is no line.
constexpr std::size_t kLongestLine = 1u << 20;

}  // namespace

OutputPump::OutputPump(int fd, std::FILE* out) : fd_(fd), out_(out) {
  ::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK);
  thread_ = std::thread([this] { run(); });
}

OutputPump::~OutputPump() {
  over_.wake();
  thread_.join();
}

void OutputPump::run() {
  std::array<pollfd, 2> fds{pollfd{fd_, POLLIN, 0}, pollfd{over_.fd(), POLLIN, 0}};
  bool ended = false;
  while (!ended) {
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) break;
    const bool over = fds[1].revents != 0;
    const bool closed = (fds[0].revents & (POLLHUP | POLLERR)) != 0;
    while (take()) {
    }
    ended = over || closed;
  }
  if (text_.empty()) return;
  text_ += '\n';
  hand_on(text_.size());
}

bool OutputPump::take() {
  std::array<char, 16384> piece;
  ssize_t got;
  do {
    got = ::read(fd_, piece.data(), piece.size());
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return false;
  text_.append(piece.data(), static_cast<std::size_t>(got));
  const std::size_t last = text_.rfind('\n');
  if (last != std::string::npos) {
    hand_on(last + 1);
  } else if (text_.size() >= kLongestLine) {
    text_ += '\n';
    hand_on(text_.size());
  }
  return true;
}

// One call, one lock of the stream: the launcher's own lines go through it too.
void OutputPump::hand_on(std::size_t bytes) {
  (void)std::fwrite(text_.data(), 1, bytes, out_);
  (void)std::fflush(out_);
  text_.erase(0, bytes);
}

}  // namespace evenkeel::trainer
