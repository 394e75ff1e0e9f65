#include "trainer/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace evenkeel::trainer {
namespace {

double step_share(const contract::ScheduleSpec& schedule, double epochs) {
  // Epochs are a quotient of integers: 2.9999999999999996 has reached milestone 3.
  constexpr double kRounding = 1e-9;
  const auto reached = std::count_if(schedule.milestones.begin(), schedule.milestones.end(),
                                     [&](double milestone) { return epochs >= milestone - kRounding; });
  return std::pow(schedule.gamma, static_cast<double>(reached));
}

}  // namespace

double schedule_share(const contract::ScheduleSpec& schedule, const SchedulePosition& position) {
  const double share = std::clamp(position.share, 0.0, 1.0), last = schedule.final_share;
  switch (schedule.kind) {
    case contract::Schedule::kConstant:
      return 1.0;
    case contract::Schedule::kStep:
      return step_share(schedule, position.epochs);
    case contract::Schedule::kCosine:
      return (1.0 - last) / 2.0 * (1.0 + std::cos(std::numbers::pi * share)) + last;
    case contract::Schedule::kPoly:
      return (1.0 - last) * std::pow(1.0 - share, schedule.power) + last;
  }
  return 1.0;
}

double warmup_rate(double base_rate, double factor, double progress) {
  const double done = std::clamp(progress, 0.0, 1.0);
  return factor > 1.0 ? base_rate * (1.0 + (factor - 1.0) * done) : base_rate * factor * done;
}

}  // namespace evenkeel::trainer
