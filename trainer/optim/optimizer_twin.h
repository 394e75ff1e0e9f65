// For tests: the optimizers written once more, naively, in double, one parameter at a time, as the formulas
// stand in the semantics. Shares no code with the fp32 passes.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "contract/job/spec.h"

namespace evenkeel::trainer {

class OptimizerTwin {
 public:
  // adapts: whether LARS may use the norms of this parameter.
  OptimizerTwin(const contract::OptimizerSpec& spec, std::size_t elements, bool adapts = true)
      : spec_(spec), adapts_(adapts), m_(elements), v_(elements) {}

  // g: the mean gradient.
  void step(std::vector<double>& w, const std::vector<double>& g, double lr) {
    ++t_;
    const double trust = spec_.type == "lars" && adapts_ ? trust_of(w, g) : 1.0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      if (spec_.type == "sgd") sgd(w[i], g[i], m_[i], lr);
      if (spec_.type == "lars") lars(w[i], g[i], m_[i], lr * trust);
      if (spec_.type == "adam" || spec_.type == "adamw") adam(w[i], g[i], m_[i], v_[i], lr);
    }
  }

 private:
  bool keras() const { return spec_.convention == contract::OptimizerConvention::kKeras; }

  void sgd(double& w, double g, double& v, double lr) const {
    const double m = spec_.momentum, wd = spec_.weight_decay;
    if (keras()) {
      w -= w * wd * lr;
      v = m * v - lr * g;
      w += spec_.nesterov ? m * v - lr * g : v;
    } else {
      g += wd * w;
      v = m * v + g;
      w -= lr * (spec_.nesterov ? g + m * v : v);
    }
  }

  void lars(double& w, double g, double& v, double rate) const {
    v = spec_.momentum * v - rate * (g + spec_.weight_decay * w);
    w += v;
  }

  double trust_of(const std::vector<double>& w, const std::vector<double>& g) const {
    double ww = 0, gg = 0;
    for (const double x : w) ww += x * x;
    for (const double x : g) gg += x * x;
    if (ww == 0 || gg == 0) return 1;
    return spec_.trust_coefficient * std::sqrt(ww) /
           (std::sqrt(gg) + spec_.weight_decay * std::sqrt(ww) + spec_.epsilon.value_or(0));
  }

  void adam(double& w, double g, double& m, double& v, double lr) const {
    const double b1 = spec_.beta1, b2 = spec_.beta2, t = static_cast<double>(t_);
    const double eps = spec_.epsilon.value_or(keras() ? 1e-7 : 1e-8);
    const bool coupled = spec_.type == "adam" && !keras();
    if (coupled) g += spec_.weight_decay * w;
    if (!coupled) w -= lr * spec_.weight_decay * w;
    m = b1 * m + (1 - b1) * g;
    v = b2 * v + (1 - b2) * g * g;
    if (keras()) {
      w -= lr * std::sqrt(1 - std::pow(b2, t)) / (1 - std::pow(b1, t)) * m / (std::sqrt(v) + eps);
    } else {
      w -= lr * (m / (1 - std::pow(b1, t))) / (std::sqrt(v / (1 - std::pow(b2, t))) + eps);
    }
  }

  contract::OptimizerSpec spec_;
  bool adapts_;
  int t_ = 0;
  std::vector<double> m_, v_;
};

}  // namespace evenkeel::trainer
