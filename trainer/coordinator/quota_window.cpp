#include "trainer/coordinator/quota_window.h"

#include <algorithm>

namespace evenkeel::trainer {

void QuotaWindow::add(double now, std::int64_t periods, std::int64_t throttled) {
  if (periods <= 0) return;
  if (!counts_.empty() && periods < counts_.back().periods) counts_.clear();  // another process
  counts_.push_back({now, periods, throttled});
  while (counts_.size() > 2 && counts_[1].at <= now - seconds_) counts_.pop_front();
}

void QuotaWindow::restart() {
  if (counts_.size() > 1) counts_.erase(counts_.begin(), counts_.end() - 1);
}

std::optional<double> QuotaWindow::throttled_share() const {
  // One or two periods say what a moment was like.
  constexpr std::int64_t kLeastPeriods = 5;
  if (counts_.empty()) return std::nullopt;
  const std::int64_t periods = counts_.back().periods - counts_.front().periods;
  if (periods < kLeastPeriods) return std::nullopt;
  const double throttled = static_cast<double>(counts_.back().throttled - counts_.front().throttled);
  return std::clamp(throttled / static_cast<double>(periods), 0.0, 1.0);
}

}  // namespace evenkeel::trainer
