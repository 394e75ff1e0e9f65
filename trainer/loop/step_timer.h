// Where the wall time of a step goes: always in exactly one phase, so that the phases add up to the wall
// time. Switched by the loop's thread. What is nobody's is `other`.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>

#include "base/clock.h"
#include "base/trace.h"
#include "contract/messages.h"

namespace evenkeel::trainer {

// Indices into contract::kPhaseNames.
enum class StepPhase {
  kInputWait,
  kCopy,
  kForward,
  kBackward,
  kCollectiveWait,
  kOptimizer,
  kCheckpoint,
  kEval,
  kOther
};
inline const char* phase_name(StepPhase phase) {
  return contract::kPhaseNames[static_cast<int>(phase)];
}

class StepTimer {
 public:
  // `core_wait`: seconds for which the loop's thread has been ready to run and had no core (core_wait.h); may be
  // empty.
  explicit StepTimer(const base::Clock& clock, std::function<double()> core_wait = {})
      : clock_(clock), core_wait_(std::move(core_wait)), since_(clock.now()) {}

  // From now on the time belongs to `phase`.
  void enter(StepPhase phase) {
    charge();
    phase_ = phase;
  }

  // What has passed since the last take(), by phase.
  contract::PhaseSeconds take() {
    charge();
    taken_no_core_ = std::exchange(no_core_, {});
    return std::exchange(phases_, {});
  }

  // Seconds without a core, of the time that the last take() returned: from the data to the optimizer, and those
  // of them in reductions.
  struct NoCore {
    double seconds = 0, reducing_seconds = 0;
  };
  const NoCore& no_core() const { return taken_no_core_; }

 private:
  void charge() {
    const base::MonotonicTime now = clock_.now();
    const double passed = base::seconds(now - since_);
    const double still = without_core(passed);
    const double own = phase_ == StepPhase::kCollectiveWait ? still : 0;
    contract::phase(phases_, static_cast<int>(phase_)) += passed - own;
    phases_.backward += own;
    if (phase_ <= StepPhase::kOptimizer) no_core_.seconds += still;
    no_core_.reducing_seconds += own;
    base::trace_span("phase", phase_name(phase_), since_, now);
    since_ = now;
  }

  // Of the `passed` seconds. A rank that stands still in a reduction, because its CPU quota is used up or others have
  // its core, waits for nobody: all others wait for it. Its gradients are late, as if backward had taken so much
  // longer.
  double without_core(double passed) {
    if (!core_wait_) return 0;
    const double before = std::exchange(had_no_core_, core_wait_());
    return std::clamp(had_no_core_ - before, 0.0, passed);
  }

  const base::Clock& clock_;
  std::function<double()> core_wait_;
  double had_no_core_ = 0;  // when the phase began
  base::MonotonicTime since_;
  StepPhase phase_ = StepPhase::kOther;
  contract::PhaseSeconds phases_;
  NoCore no_core_, taken_no_core_;
};

}  // namespace evenkeel::trainer
