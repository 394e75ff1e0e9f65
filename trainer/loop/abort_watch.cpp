#include "trainer/loop/abort_watch.h"

#include <poll.h>

#include <array>
#include <cerrno>

namespace evenkeel::trainer {
namespace {

void watch(int abort_fd, int over_fd, Collective& collective) {
  std::array<pollfd, 2> fds{{{abort_fd, POLLIN, 0}, {over_fd, POLLIN, 0}}};
  while (::poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) {
  }
  if (fds[0].revents != 0) collective.abort("the coordinator has called this rank out of its group, or it is lost");
}

}  // namespace

AbortWatch::AbortWatch(const base::Waker& abort, Collective& collective)
    : thread_([abort_fd = abort.fd(), over_fd = over_.fd(), &collective] {
        watch(abort_fd, over_fd, collective);
      }) {}

AbortWatch::~AbortWatch() {
  over_.wake();
  thread_.join();
}

}  // namespace evenkeel::trainer
