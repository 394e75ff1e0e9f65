// SIGTERM and SIGINT as a flag and a waker: the program stops where it waits, in order. One at a time, made in main
// before any thread. Also ignores SIGPIPE: a closed peer is an error of the call, not the end of the program.
#pragma once

#include "base/clock.h"
#include "base/socket.h"

namespace evenkeel::base {

class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Awake for good once a signal has come. A second SIGINT ends the program at once: a user who presses twice means it.
  const Waker& waker() const { return waker_; }
  bool requested() const { return number() != 0; }
  // SIGTERM or SIGINT; 0 before.
  int number() const;
  // Waits for a signal: true when it came, false at the deadline.
  bool wait(MonotonicTime deadline) const;

 private:
  Waker waker_;
};

}  // namespace evenkeel::base
