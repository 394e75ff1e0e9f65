#include "trainer/launch/restart_budget.h"

#include <algorithm>
#include <cmath>

#include "contract/exit_codes.h"
#include "contract/job/restart_rules.h"

namespace evenkeel::trainer {
namespace {

constexpr int kTryAgain = static_cast<int>(contract::ExitCode::kTryAgain);
constexpr int kInternal = static_cast<int>(contract::ExitCode::kInternal);
constexpr int kStopped = static_cast<int>(contract::ExitCode::kStopped);
constexpr int kSignalBase = 128;

}  // namespace

bool may_start_again(const contract::RestartSpec& restart, int exit_code) {
  if (restart.scope != contract::RestartScope::kWorker) return false;
  const bool by_signal = exit_code > kSignalBase && exit_code != kStopped;
  if (!by_signal && exit_code != kTryAgain && exit_code != kInternal) return false;
  return contract::action_for(restart, exit_code) != contract::RestartAction::kFailJob;
}

std::optional<double> RestartBudget::take(int exit_code, double now) {
  while (!recent_.empty() && recent_.front() <= now - limits_.window_seconds) recent_.pop_front();
  const int before = static_cast<int>(recent_.size());
  if (before >= limits_.most || taken_ >= limits_.most_in_all) return std::nullopt;
  recent_.push_back(now);
  ++taken_;
  const double pause = before == 0 ? 0 : std::exp2(before - 1);
  return exit_code == kTryAgain ? std::max(pause, limits_.least_after_try_again) : pause;
}

}  // namespace evenkeel::trainer
