#include "trainer/optim/sgd.h"

#include <algorithm>
#include <cassert>

namespace evenkeel::trainer {
namespace {

// The inner loops are free functions over plain pointers, so that the compiler sees independent streams and
// vectorises. Every number of a step in one struct: they come from different places but travel together.
struct Numbers {
  float rate, per_sample, momentum,
      decay;  // per_sample = 1 / count: a division for each element costs as much as the rest
};

void pytorch_momentum(float* __restrict w, const float* __restrict g, float* __restrict v, std::uint64_t n,
                      Numbers s) {
  for (std::uint64_t i = 0; i < n; ++i) {
    v[i] = s.momentum * v[i] + (g[i] * s.per_sample + s.decay * w[i]);
    w[i] -= s.rate * v[i];
  }
}

void keras_momentum(float* __restrict w, const float* __restrict g, float* __restrict v, std::uint64_t n,
                    Numbers s) {
  const float shrink = s.decay * s.rate;
  for (std::uint64_t i = 0; i < n; ++i) {
    v[i] = s.momentum * v[i] - s.rate * (g[i] * s.per_sample);
    w[i] = (w[i] - shrink * w[i]) + v[i];
  }
}

// Without momentum the conventions differ in the decay alone, and not even there: w -= lr*(g + wd*w) is both.
void plain(float* __restrict w, const float* __restrict g, std::uint64_t n, Numbers s) {
  for (std::uint64_t i = 0; i < n; ++i) w[i] -= s.rate * (g[i] * s.per_sample + s.decay * w[i]);
}

}  // namespace

std::vector<Segment> segments_of(const Plan* plan, double weight_decay) {
  std::vector<Segment> segments;
  if (plan == nullptr) return segments;
  std::vector<const PlanParameter*> by_offset;
  for (const PlanParameter& p : plan->parameters) by_offset.push_back(&p);
  std::ranges::sort(by_offset, {}, &PlanParameter::offset_elements);
  for (std::size_t i = 0; i < by_offset.size(); ++i) {
    // Padding goes with the parameter before it: it is zero in every arena and stays so.
    const std::uint64_t end =
        i + 1 < by_offset.size() ? by_offset[i + 1]->offset_elements : plan->common_layout_elements();
    const double decay = by_offset[i]->decays ? weight_decay : 0.0;
    if (!segments.empty() && segments.back().weight_decay == decay) {
      segments.back().end = end;
    } else {
      segments.push_back({by_offset[i]->offset_elements, end, decay});
    }
  }
  return segments;
}

Sgd::Sgd(const contract::OptimizerSpec& spec, std::vector<Segment> segments)
    : convention_(spec.convention),
      momentum_(static_cast<float>(spec.momentum)),
      segments_(std::move(segments)) {}

int Sgd::slots() const {
  return momentum_ == 0.0f ? 0 : 1;
}

const char* Sgd::slot_name(int) const {
  return "velocity";
}

void Sgd::step(std::span<float> w, std::span<const float> g, std::span<float> state, const UpdateArgs& args) {
  assert(g.size() == w.size() && state.size() == w.size() * static_cast<std::size_t>(slots()));
  if (args.count <= 0) return;
  Numbers numbers{static_cast<float>(args.learning_rate), static_cast<float>(1.0 / args.count), momentum_,
                  0.0f};
  for (const Segment& s : segments_) {
    numbers.decay = static_cast<float>(s.weight_decay);
    const std::uint64_t n = s.end - s.begin;
    if (slots() == 0) {
      plain(w.data() + s.begin, g.data() + s.begin, n, numbers);
    } else if (convention_ == contract::OptimizerConvention::kPyTorch) {
      pytorch_momentum(w.data() + s.begin, g.data() + s.begin, state.data() + s.begin, n, numbers);
    } else {
      keras_momentum(w.data() + s.begin, g.data() + s.begin, state.data() + s.begin, n, numbers);
    }
  }
}

}  // namespace evenkeel::trainer
