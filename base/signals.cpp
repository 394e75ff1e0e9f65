#include "base/signals.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace evenkeel::base {
namespace {

void ignore_broken_pipes() {
  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
}

// As if the signal had never been taken: the system ends the program, and the shell sees why.
void end_by(int number) {
  signal(number, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  raise(number);
}

}  // namespace

StopSignal::StopSignal() {
  ignore_broken_pipes();
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals_, &mask_before_);
  thread_ = std::thread([this] { take_signals(); });
}

StopSignal::~StopSignal() {
  over_.wake();
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void StopSignal::take_signals() {
  const Socket taken(signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK));
  std::array<pollfd, 2> fds{pollfd{taken.fd(), POLLIN, 0}, pollfd{over_.fd(), POLLIN, 0}};
  while (true) {
    ::poll(fds.data(), fds.size(), -1);
    signalfd_siginfo info{};
    while (::read(taken.fd(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const int number = static_cast<int>(info.ssi_signo);
      if (number == SIGINT && number_ == SIGINT) end_by(SIGINT);
      number_ = number;
      waker_.wake();
    }
    if (fds[1].revents != 0) return;
  }
}

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
