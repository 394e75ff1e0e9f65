// When a rank that has ended is started again in its own pod, and when that is given up: the step of the ladder
// between "the others go on" and "another pod". Used by the launcher, one budget for each rank. Pure.
#pragma once

#include <deque>
#include <optional>

#include "contract/job/spec.h"

namespace evenkeel::trainer {

// Killed or crashed, a defect (70), or lost by the others (75): a fresh process in the same place may do better.
// Not what no repetition mends, nor a disk that another machine may not have (74), nor what was asked for. A rule of
// the job that ends it with this code is obeyed. With restart.scope Job a rank is never taken back.
bool may_start_again(const contract::RestartSpec& restart, int exit_code);

struct RestartLimits {
  int most = 3;                 // in `window_seconds`
  double window_seconds = 600;
  int most_in_all = 1000;       // below Settings::kMaxRestartsInPod
  double least_after_try_again = 1;  // seconds: most often the job has ended, and somebody is about to say so
};

class RestartBudget {
 public:
  explicit RestartBudget(RestartLimits limits = {}) : limits_(limits) {}
  // Seconds to wait before the next start: 0, then 1, 2, 4, ... Nothing: it has been tried often enough.
  std::optional<double> take(int exit_code, double now);
  int taken() const { return taken_; }

 private:
  RestartLimits limits_;
  std::deque<double> recent_;
  int taken_ = 0;
};

}  // namespace evenkeel::trainer
