// SIGTERM and SIGINT as a flag and a waker: the program stops where it waits, in order. One at a time, made
// in main before any thread: both signals are blocked there, so that every later thread inherits it, and a
// thread of its own takes them. No handler ever runs on a computing thread: JIT-compiled kernels (oneDNN's
// f32 gemm) use the stack pointer as a data pointer, and a signal frame pushed there would overwrite the
// heap. Also ignores SIGPIPE: a closed peer is an error of the call, not the end of the program.
#pragma once

#include <signal.h>

#include <atomic>
#include <thread>

#include "base/clock.h"
#include "base/socket.h"

namespace evenkeel::base {

class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Awake for good once a signal has come. A second SIGINT ends the program at once: a user who presses twice
  // means it.
  const Waker& waker() const { return waker_; }
  bool requested() const { return number() != 0; }
  // SIGTERM or SIGINT; 0 before.
  int number() const { return number_; }
  // Waits for a signal: true when it came, false at the deadline.
  bool wait(MonotonicTime deadline) const;

 private:
  void take_signals();

  sigset_t signals_{};
  sigset_t mask_before_{};
  std::atomic<int> number_{0};
  Waker waker_;
  Waker over_;
  std::thread thread_;
};

}  // namespace evenkeel::base
