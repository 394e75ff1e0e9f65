// What the coordinator wants of this rank, in order, with a look ahead: plans are issued several steps early,
// and what they will need can be read while the present one is computed. Used by the loop's thread.
#pragma once

#include <deque>
#include <functional>

#include "base/result.h"
#include "trainer/coordinator/member_client.h"

namespace evenkeel::trainer {

class MemberEvents {
 public:
  // client must outlive it. stopping: whether this rank was asked to end.
  MemberEvents(MemberClient& client, std::function<bool()> stopping)
      : client_(client), stopping_(std::move(stopping)) {}

  // The next event; waits for it. Once we were asked to stop, silence of the coordinator has an end:
  // kUnavailable.
  base::Result<MemberEvent> next();
  // The same, but waits until `deadline` at most: kDeadlineExceeded.
  base::Result<MemberEvent> next_until(base::MonotonicTime deadline);
  // Takes what is there already, without waiting, and shows every plan among it.
  void look_ahead(const std::function<void(const contract::StepPlan&)>& show);

 private:
  MemberClient& client_;
  std::function<bool()> stopping_;
  std::deque<base::Result<MemberEvent>> taken_;  // from the client, not yet lived through
};

}  // namespace evenkeel::trainer
