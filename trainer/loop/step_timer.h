// Where the wall time of a step goes: always in exactly one phase, so that the phases add up to the wall
// time. Switched by the loop's thread. What is nobody's is `other`.
#pragma once

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
  explicit StepTimer(const base::Clock& clock) : clock_(clock), since_(clock.now()) {}

  // From now on the time belongs to `phase`.
  void enter(StepPhase phase) {
    charge();
    phase_ = phase;
  }

  // What has passed since the last take(), by phase.
  contract::PhaseSeconds take() {
    charge();
    const contract::PhaseSeconds result = phases_;
    phases_ = {};
    return result;
  }

 private:
  void charge() {
    const base::MonotonicTime now = clock_.now();
    contract::phase(phases_, static_cast<int>(phase_)) += base::seconds(now - since_);
    base::trace_span("phase", phase_name(phase_), since_, now);
    since_ = now;
  }

  const base::Clock& clock_;
  base::MonotonicTime since_;
  StepPhase phase_ = StepPhase::kOther;
  contract::PhaseSeconds phases_;
};

}  // namespace evenkeel::trainer
