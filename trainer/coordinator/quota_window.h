// In what part of the recent periods of its CPU quota a rank was stopped, from the counts in its heartbeats.
// One for each member of a job; owned by Coordination. Pure; not thread safe.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace evenkeel::trainer {

class QuotaWindow {
 public:
  // As long as the diagnosis looks back.
  explicit QuotaWindow(double seconds = 10) : seconds_(seconds) {}

  // Counted since the rank's process began; 0 periods: it has no quota, or does not know it.
  void add(double now, std::int64_t periods, std::int64_t throttled);
  // What came before says nothing about what is so from now on.
  void restart();
  // 0..1; absent: too few periods yet.
  std::optional<double> throttled_share() const;

 private:
  struct Count {
    double at = 0;
    std::int64_t periods = 0, throttled = 0;
  };
  double seconds_;
  std::deque<Count> counts_;  // oldest first; the first one is at least as old as the window, once it is full
};

}  // namespace evenkeel::trainer
