#include "trainer/coordinator/history.h"

#include <algorithm>
#include <utility>

namespace evenkeel::trainer {
namespace {

constexpr std::size_t kFewestPoints = 8;  // fewer are no picture

}  // namespace

std::size_t History::limit() const {
  return std::min(contract::kMaxHistoryPoints, contract::kMaxHistoryEntries / ranks_);
}

void History::merge(Point& into, const Point& other) {
  into.step = std::max(into.step, other.step);
  into.steps += other.steps;
  into.step_seconds += other.step_seconds;
  if (into.ranks.size() < other.ranks.size()) into.ranks.resize(other.ranks.size());
  for (std::size_t r = 0; r < other.ranks.size(); ++r) {
    into.ranks[r].steps += other.ranks[r].steps;
    into.ranks[r].samples += other.ranks[r].samples;
    into.ranks[r].compute_seconds += other.ranks[r].compute_seconds;
    into.ranks[r].input_seconds += other.ranks[r].input_seconds;
  }
}

void History::add(const StepWork& step) {
  Point point{step.step, 1, step.step_seconds, {}};
  for (const RankWork& rank : step.ranks) {
    point.ranks.emplace_back();
    if (rank.present) point.ranks.back() = {1, rank.samples, rank.compute_seconds, rank.input_seconds};
  }
  ranks_ = std::max(ranks_, step.ranks.size());
  if (limit() < kFewestPoints) {
    points_.clear();
    return;
  }
  if (!points_.empty() && points_.back().steps < steps_each_) {
    merge(points_.back(), point);
  } else {
    points_.push_back(std::move(point));
  }
  while (points_.size() > limit()) {
    steps_each_ *= 2;
    std::vector<Point> halved;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (i % 2 == 0) {
        halved.push_back(std::move(points_[i]));
      } else {
        merge(halved.back(), points_[i]);
      }
    }
    points_ = std::move(halved);
  }
}

std::vector<contract::HistoryPoint> History::points() const {
  std::vector<contract::HistoryPoint> result;
  for (const Point& point : points_) {
    const double steps = static_cast<double>(point.steps);
    contract::HistoryPoint out{point.step, point.steps, point.step_seconds / steps, {}};
    for (std::size_t r = 0; r < point.ranks.size(); ++r) {
      const auto& rank = point.ranks[r];
      const double own = static_cast<double>(rank.steps);
      if (rank.steps == 0) continue;
      out.ranks.push_back(
          {static_cast<int>(r), rank.samples / own, rank.compute_seconds / own, rank.input_seconds / own});
    }
    result.push_back(std::move(out));
  }
  return result;
}

}  // namespace evenkeel::trainer
