#include "trainer/optim/sgd.h"

#include <cassert>

namespace evenkeel::trainer {
namespace {

// The inner loops are free functions over plain pointers, so that the compiler sees independent streams and
// vectorises. Every number of a step in one struct: they come from different places but travel together.
struct Numbers {
  float rate, per_sample, momentum;  // per_sample = scale / count: a division for each element costs as much
  float decay;                       // as the rest
};

using Kernel = void (*)(float* __restrict w, const float* __restrict g, float* __restrict v, std::uint64_t n,
                        Numbers s);

void pytorch_momentum(float* __restrict w, const float* __restrict g, float* __restrict v, std::uint64_t n,
                      Numbers s) {
  for (std::uint64_t i = 0; i < n; ++i) {
    v[i] = s.momentum * v[i] + (g[i] * s.per_sample + s.decay * w[i]);
    w[i] -= s.rate * v[i];
  }
}

void pytorch_nesterov(float* __restrict w, const float* __restrict g, float* __restrict v, std::uint64_t n,
                      Numbers s) {
  for (std::uint64_t i = 0; i < n; ++i) {
    const float gradient = g[i] * s.per_sample + s.decay * w[i];
    v[i] = s.momentum * v[i] + gradient;
    w[i] -= s.rate * (gradient + s.momentum * v[i]);
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

void keras_nesterov(float* __restrict w, const float* __restrict g, float* __restrict v, std::uint64_t n,
                    Numbers s) {
  const float shrink = s.decay * s.rate;
  for (std::uint64_t i = 0; i < n; ++i) {
    const float move = s.rate * (g[i] * s.per_sample);
    v[i] = s.momentum * v[i] - move;
    w[i] = (w[i] - shrink * w[i]) + (s.momentum * v[i] - move);
  }
}

// Without momentum the conventions differ in the decay alone, and not even there: w -= lr*(g + wd*w) is both.
void plain(float* __restrict w, const float* __restrict g, float* __restrict, std::uint64_t n, Numbers s) {
  for (std::uint64_t i = 0; i < n; ++i) w[i] -= s.rate * (g[i] * s.per_sample + s.decay * w[i]);
}

Kernel kernel_of(contract::OptimizerConvention convention, bool nesterov, bool has_momentum) {
  if (!has_momentum) return plain;
  if (convention == contract::OptimizerConvention::kPyTorch)
    return nesterov ? pytorch_nesterov : pytorch_momentum;
  return nesterov ? keras_nesterov : keras_momentum;
}

}  // namespace

Sgd::Sgd(const contract::OptimizerSpec& spec, std::vector<Segment> segments)
    : convention_(spec.convention),
      nesterov_(spec.nesterov),
      momentum_(static_cast<float>(spec.momentum)),
      segments_(std::move(segments)) {}

int Sgd::slots() const {
  return momentum_ == 0.0f ? 0 : 1;
}

const char* Sgd::slot_name(int) const {
  return "velocity";
}

void Sgd::step(std::span<float> w, std::span<const float> g, std::span<float> state, const UpdateArgs& args) {
  assert(covers(segments_, w.size()) && covers(segments_, g.size()));
  assert(slots() == 0 || covers(segments_, state.size()));
  if (args.count <= 0) return;
  const Kernel kernel = kernel_of(convention_, nesterov_, slots() != 0);
  const bool holds_the_rate = convention_ == contract::OptimizerConvention::kKeras;
  Numbers numbers{static_cast<float>(args.learning_rate),
                  static_cast<float>(args.gradient_scale / args.count),
                  holds_the_rate ? momentum_ * static_cast<float>(args.momentum_correction) : momentum_, 0.0f};
  for (const Segment& s : segments_) {
    numbers.decay = static_cast<float>(s.weight_decay);
    float* const velocity = slots() == 0 ? nullptr : state.data() + s.begin;
    kernel(w.data() + s.begin, g.data() + s.begin, velocity, s.end - s.begin, numbers);
  }
}

}  // namespace evenkeel::trainer
