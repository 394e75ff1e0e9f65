#include "trainer/loop/member_events.h"

#include <optional>

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

// After SIGTERM the coordinator ends the job at a step boundary with a checkpoint; longer than this without a
// word from it and the pod's grace period (60 s) would end first.
constexpr base::Duration kStopPatience = std::chrono::seconds(45);
constexpr base::Duration kSlice = std::chrono::milliseconds(500);
constexpr std::size_t kMostAhead = 8;

}  // namespace

Result<MemberEvent> MemberEvents::next_until(base::MonotonicTime deadline) {
  if (taken_.empty()) return client_.next_event(deadline);
  Result<MemberEvent> event = std::move(taken_.front());
  taken_.pop_front();
  return event;
}

Result<MemberEvent> MemberEvents::next() {
  std::optional<base::MonotonicTime> give_up_at;
  for (;;) {
    const base::MonotonicTime now = base::real_clock().now();
    Result<MemberEvent> event = next_until(now + kSlice);
    if (event.ok() || event.error().code != ErrorCode::kDeadlineExceeded) return event;
    if (!stopping_()) continue;
    if (!give_up_at) give_up_at = now + kStopPatience;
    if (now >= *give_up_at) {
      return Error{ErrorCode::kUnavailable, "asked to stop, and the coordinator planned no end within 45 s"};
    }
  }
}

void MemberEvents::look_ahead(const std::function<void(const contract::StepPlan&)>& show) {
  while (taken_.size() < kMostAhead) {
    std::optional<Result<MemberEvent>> event = client_.try_event();
    if (!event) return;
    if (event->ok() && std::holds_alternative<contract::StepPlan>(**event))
      show(std::get<contract::StepPlan>(**event));
    taken_.push_back(std::move(*event));
  }
}

}  // namespace evenkeel::trainer
