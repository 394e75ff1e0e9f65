#include "base/signals.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

namespace evenkeel::base {
namespace {

// A signal handler reaches nothing but globals; both are lock-free.
std::atomic<Waker*> current{nullptr};
std::atomic<int> last_number{0};
static_assert(std::atomic<Waker*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void on_signal(int number) {
  const int saved = errno;
  last_number = number;
  if (Waker* waker = current.load()) waker->wake();  // one write(2)
  errno = saved;
}

void handle(int number, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

}  // namespace

StopSignal::StopSignal() {
  last_number = 0;
  current = &waker_;
  handle(SIGPIPE, SIG_IGN, 0);
  handle(SIGTERM, on_signal, SA_RESTART);
  handle(SIGINT, on_signal, SA_RESTART | static_cast<int>(SA_RESETHAND));
}

StopSignal::~StopSignal() {
  handle(SIGTERM, SIG_DFL, 0);
  handle(SIGINT, SIG_DFL, 0);
  current = nullptr;
}

int StopSignal::number() const { return last_number; }

bool StopSignal::wait(MonotonicTime deadline) const {
  pollfd polled{waker_.fd(), POLLIN, 0};
  while (!requested()) {
    const MonotonicTime now = real_clock().now();
    if (now >= deadline) return false;
    const Duration left = std::min<Duration>(deadline - now, std::chrono::hours(1));
    const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    ppoll(&polled, 1, &timeout, nullptr);
  }
  return true;
}

}  // namespace evenkeel::base
