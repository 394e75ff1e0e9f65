#include "trainer/coordinator/diagnosis_window.h"

#include <utility>

namespace evenkeel::trainer {

void DiagnosisWindow::restart() {
  steps_.clear();
  seconds_ = 0;
}

double DiagnosisWindow::mean_samples() const {
  double samples = 0, ranks = 0;
  for (const StepWork& step : steps_) {
    for (const RankWork& rank : step.ranks) {
      samples += rank.samples;
      ranks += rank.present ? 1 : 0;
    }
  }
  return ranks > 0 ? samples / ranks : 0;
}

void DiagnosisWindow::add(StepWork step, bool special) {
  if (++seen_ <= limits_.warmup_steps || special || step.step_seconds <= 0) return;
  if (!steps_.empty() && present_ranks(steps_.back()) != present_ranks(step)) restart();
  seconds_ += step.step_seconds;
  steps_.push_back(std::move(step));
  const auto can_go = [&](const StepWork& oldest) {
    if (size() > limits_.max_steps) return true;
    return size() > limits_.steps && seconds_ - oldest.step_seconds >= limits_.seconds;
  };
  while (can_go(steps_.front())) {
    seconds_ -= steps_.front().step_seconds;
    steps_.pop_front();
  }
}

}  // namespace evenkeel::trainer
