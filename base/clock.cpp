#include "base/clock.h"

#include <thread>

namespace evenkeel::base {
namespace {

class RealClock : public Clock {
 public:
  MonotonicTime now() const override { return std::chrono::steady_clock::now(); }
  WallTime wall_now() const override { return std::chrono::system_clock::now(); }
  void sleep_for(Duration duration) override { std::this_thread::sleep_for(duration); }
};

}  // namespace

Clock& real_clock() {
  static RealClock clock;
  return clock;
}

}  // namespace evenkeel::base
