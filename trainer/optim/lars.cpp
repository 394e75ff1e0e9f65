#include "trainer/optim/lars.h"

#include <cassert>
#include <cmath>

#include "trainer/optim/finite.h"

namespace evenkeel::trainer {
namespace {

void update(float* __restrict w, const float* __restrict g, float* __restrict v, std::uint64_t n,
            float momentum, float rate, float per_sample, float decay) {
  for (std::uint64_t i = 0; i < n; ++i) {
    v[i] = momentum * v[i] - rate * (g[i] * per_sample + decay * w[i]);
    w[i] += v[i];
  }
}

}  // namespace

double lars_trust(double weight_norm, double gradient_norm, double coefficient, double weight_decay,
                  double epsilon) {
  if (weight_norm == 0 || gradient_norm == 0) return 1.0;
  return coefficient * weight_norm / (gradient_norm + weight_decay * weight_norm + epsilon);
}

Lars::Lars(const contract::OptimizerSpec& spec, std::vector<Segment> segments)
    : coefficient_(spec.trust_coefficient),
      epsilon_(spec.epsilon.value_or(0.0)),
      momentum_(static_cast<float>(spec.momentum)),
      segments_(std::move(segments)) {}

void Lars::step(std::span<float> w, std::span<const float> g, std::span<float> state,
                const UpdateArgs& args) {
  assert(covers(segments_, w.size()) && covers(segments_, g.size()) && covers(segments_, state.size()));
  if (args.count <= 0) return;
  const double per_sample = args.gradient_scale / args.count;
  const float momentum = momentum_ * static_cast<float>(args.momentum_correction);
  for (const Segment& s : segments_) {
    const std::uint64_t n = s.end - s.begin;
    double trust = 1.0;
    if (s.adapts) {
      trust = lars_trust(std::sqrt(squared_norm(w.subspan(s.begin, n))),
                         std::sqrt(squared_norm(g.subspan(s.begin, n))) * per_sample, coefficient_,
                         s.weight_decay, epsilon_);
    }
    update(w.data() + s.begin, g.data() + s.begin, state.data() + s.begin, n, momentum,
           static_cast<float>(args.learning_rate * trust), static_cast<float>(per_sample),
           static_cast<float>(s.weight_decay));
  }
}

}  // namespace evenkeel::trainer
