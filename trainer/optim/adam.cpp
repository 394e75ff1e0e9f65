#include "trainer/optim/adam.h"

#include <cassert>
#include <cmath>

namespace evenkeel::trainer {
namespace {

// Both conventions are one loop: w -= rate * m / (sqrt(v) * root_scale + epsilon).
struct Numbers {
  float per_sample, beta1, rest1, beta2, rest2;  // rest = 1 - beta, rounded once: 1 - 0.999f is 5e-5 off
  float rate, root_scale, epsilon;
  float coupled, shrink;  // weight decay; one of them is 0
};

void update(float* __restrict w, const float* __restrict g, float* __restrict m, float* __restrict v,
            std::uint64_t n, Numbers s) {
  for (std::uint64_t i = 0; i < n; ++i) {
    const float gradient = g[i] * s.per_sample + s.coupled * w[i];
    m[i] = s.beta1 * m[i] + s.rest1 * gradient;
    v[i] = s.beta2 * v[i] + s.rest2 * (gradient * gradient);
    w[i] = (w[i] - s.shrink * w[i]) - s.rate * (m[i] / (std::sqrt(v[i]) * s.root_scale + s.epsilon));
  }
}

}  // namespace

double adam_epsilon(const contract::OptimizerSpec& spec) {
  return spec.epsilon.value_or(spec.convention == contract::OptimizerConvention::kKeras ? 1e-7 : 1e-8);
}

Adam::Adam(const contract::OptimizerSpec& spec, std::vector<Segment> segments)
    : convention_(spec.convention),
      coupled_(spec.type == "adam" && spec.convention == contract::OptimizerConvention::kPyTorch),
      beta1_(spec.beta1),
      beta2_(spec.beta2),
      epsilon_(adam_epsilon(spec)),
      segments_(std::move(segments)) {}

void Adam::step(std::span<float> w, std::span<const float> g, std::span<float> state,
                const UpdateArgs& args) {
  const std::size_t layout = state.size() / 2;
  assert(covers(segments_, w.size()) && covers(segments_, g.size()) && covers(segments_, layout));
  assert(args.step >= 1);
  if (args.count <= 0) return;
  const auto t = static_cast<double>(args.step);
  const double correction1 = 1.0 - std::pow(beta1_, t), root2 = std::sqrt(1.0 - std::pow(beta2_, t));
  const bool keras = convention_ == contract::OptimizerConvention::kKeras;
  Numbers numbers{};
  numbers.per_sample = static_cast<float>(args.gradient_scale / args.count);
  numbers.beta1 = static_cast<float>(beta1_);
  numbers.rest1 = static_cast<float>(1.0 - beta1_);
  numbers.beta2 = static_cast<float>(beta2_);
  numbers.rest2 = static_cast<float>(1.0 - beta2_);
  numbers.rate = static_cast<float>(args.learning_rate * (keras ? root2 : 1.0) / correction1);
  numbers.root_scale = static_cast<float>(keras ? 1.0 : 1.0 / root2);
  numbers.epsilon = static_cast<float>(epsilon_);
  float* const first = state.data();
  float* const second = state.data() + layout;
  for (const Segment& s : segments_) {
    numbers.coupled = coupled_ ? static_cast<float>(s.weight_decay) : 0.0f;
    numbers.shrink = coupled_ ? 0.0f : static_cast<float>(s.weight_decay * args.learning_rate);
    update(w.data() + s.begin, g.data() + s.begin, first + s.begin, second + s.begin, s.end - s.begin,
           numbers);
  }
}

}  // namespace evenkeel::trainer
