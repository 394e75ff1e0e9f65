#include "trainer/optim/segments.h"

#include <algorithm>

namespace evenkeel::trainer {

std::vector<Segment> segments_of(const Plan* plan, double weight_decay, Segmentation segmentation) {
  std::vector<Segment> segments;
  if (plan == nullptr) return segments;
  std::vector<const PlanParameter*> by_offset;
  for (const PlanParameter& p : plan->parameters) by_offset.push_back(&p);
  std::ranges::sort(by_offset, {}, &PlanParameter::offset_elements);
  for (const PlanParameter* p : by_offset) {
    const Segment next{p->offset_elements, p->offset_elements + static_cast<std::uint64_t>(p->elements),
                       p->decays ? weight_decay : 0.0, p->decays};
    const bool joins = segmentation == Segmentation::kMerged && !segments.empty() &&
                       segments.back().end == next.begin && segments.back().weight_decay == next.weight_decay;
    if (joins) {
      segments.back().end = next.end;
    } else {
      segments.push_back(next);
    }
  }
  return segments;
}

bool covers(const std::vector<Segment>& segments, std::size_t elements) {
  return segments.empty() || segments.back().end <= elements;
}

}  // namespace evenkeel::trainer
