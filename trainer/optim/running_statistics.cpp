#include "trainer/optim/running_statistics.h"

namespace evenkeel::trainer {
namespace {

void move(std::span<float> running, std::span<const float> sums, float count, double momentum) {
  if (!(count > 0)) return;
  for (std::size_t c = 0; c < running.size(); ++c) {
    const double now = static_cast<double>(sums[c]) / static_cast<double>(count);
    running[c] = static_cast<float>((1 - momentum) * static_cast<double>(running[c]) + momentum * now);
  }
}

}  // namespace

void update_running_statistics(const Plan& plan, std::span<float> parameter_arena,
                               std::span<const float> gradient_arena) {
  for (const PlanStatistic& s : plan.statistics) {
    const auto channels = static_cast<std::size_t>(s.channels);
    const auto sums = gradient_arena.subspan(s.sums_offset_elements, 2 * channels + 2);
    move(parameter_arena.subspan(s.mean_offset_elements, channels), sums.first(channels), sums[2 * channels],
         s.momentum);
    move(parameter_arena.subspan(s.variance_offset_elements, channels), sums.subspan(channels, channels),
         sums[2 * channels + 1], s.momentum);
  }
}

}  // namespace evenkeel::trainer
