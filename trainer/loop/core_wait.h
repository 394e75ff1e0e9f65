// How long a thread was ready to run and had no core: others ran on it, or the CPU quota of its cgroup was used
// up. By the kernel's scheduler statistics of the thread that made this; asked by the step timer at each change of
// phase. One thread.
#pragma once

#include <optional>
#include <string_view>

namespace evenkeel::trainer {

class CoreWait {
 public:
  CoreWait();
  ~CoreWait();
  CoreWait(const CoreWait&) = delete;
  CoreWait& operator=(const CoreWait&) = delete;

  // Since the thread began; 0 where the kernel does not tell.
  double seconds() const;

 private:
  int fd_ = -1;
};

// Of "RUN WAIT SLICES", nanoseconds. Absent where nothing is counted: a thread that asks has run.
std::optional<double> core_wait_of(std::string_view schedstat);

}  // namespace evenkeel::trainer
