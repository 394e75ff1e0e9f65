// What each rank did over the whole run, in few points: means over as many steps as it takes for all of them
// to fit. Owned by Coordination; part of the report. Pure; not thread safe.
#pragma once

#include <cstdint>
#include <vector>

#include "contract/report.h"
#include "trainer/coordinator/waterfall.h"

namespace evenkeel::trainer {

class History {
 public:
  // A committed step. Twice as many steps go into a point whenever there are too many points.
  void add(const StepWork& step);
  // Oldest first; the newest may hold fewer steps. Empty where there are too many ranks for a picture.
  std::vector<contract::HistoryPoint> points() const;

 private:
  // Sums over its steps; a rank that took part in some of them counts with those.
  struct Point {
    std::int64_t step = 0, steps = 0;
    double step_seconds = 0;
    struct Rank {
      std::int64_t steps = 0;
      double samples = 0, compute_seconds = 0, input_seconds = 0;
    };
    std::vector<Rank> ranks;
  };
  static void merge(Point& into, const Point& other);
  std::size_t limit() const;

  std::vector<Point> points_;
  std::int64_t steps_each_ = 1;
  std::size_t ranks_ = 1;
};

}  // namespace evenkeel::trainer
