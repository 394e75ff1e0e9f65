// When reconcile has to run again without any event: the earliest of all reasons. Pure.
#pragma once

#include <algorithm>
#include <optional>

#include "base/time_text.h"

namespace evenkeel::oper {

class Wake {
 public:
  void by(base::WallTimeValue time) { at_ = at_ ? std::min(*at_, time) : time; }
  std::optional<base::WallTimeValue> at() const { return at_; }

 private:
  std::optional<base::WallTimeValue> at_;
};

}  // namespace evenkeel::oper
