// The last steps that the diagnosis looks at: after the warm-up, without steps that evaluated or wrote a
// checkpoint (their waits are charged apart), long enough in steps and in wall time. Owned by Coordination.
// Pure; not thread safe.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "trainer/coordinator/waterfall.h"

namespace evenkeel::trainer {

struct WindowLimits {
  int warmup_steps = 10;  // of the attempt; caches, buffers and clocks settle
  int min_steps = 10;     // fewer: no verdict
  // A rank under a CPU quota runs some steps at full speed and stands still in others (100 ms periods), so
  // that a few short steps say nothing about it: the window also covers this much wall time.
  double min_seconds = 1.0;
  int steps = 20;         // kept, or as many more as `seconds` needs
  double seconds = 10.0;  // a verdict should not change with every pause of a shared machine
  int max_steps = 4096;
};

class DiagnosisWindow {
 public:
  explicit DiagnosisWindow(WindowLimits limits = {}) : limits_(limits) {}

  // A committed step. `special`: it or the step before it evaluated or saved. Steps of another group of ranks
  // say nothing about this one: they are forgotten.
  void add(StepWork step, bool special);
  bool ready() const { return size() >= limits_.min_steps && seconds_ >= limits_.min_seconds; }
  // The shares were changed: what was measured before is no longer so. The warm-up is not repeated.
  void restart();
  int size() const { return static_cast<int>(steps_.size()); }
  double seconds() const { return seconds_; }
  double mean_samples() const;  // of a rank that takes part, in a step; 0 without steps
  std::vector<StepWork> steps() const { return {steps_.begin(), steps_.end()}; }
  const WindowLimits& limits() const { return limits_; }

 private:
  WindowLimits limits_;
  std::deque<StepWork> steps_;
  double seconds_ = 0;
  std::int64_t seen_ = 0;
};

}  // namespace evenkeel::trainer
