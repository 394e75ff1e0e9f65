// LARS: SGD with momentum whose step is as long relative to the gradient as the weights are, for large
// batches. Made by make_optimizer(); the tests make it by hand. For each parameter:
//   trust = c*|w| / (|g| + wd*|w| + eps), 1 where a norm is 0;  v = m*v - lr*trust*(g + wd*w);  w += v
// Biases and batch norm take neither decay nor trust. Norms are Euclidean, in double.
#pragma once

#include <span>
#include <vector>

#include "trainer/optim/optimizer.h"
#include "trainer/optim/segments.h"

namespace evenkeel::trainer {

class Lars : public Optimizer {
 public:
  // segments: one for each parameter.
  Lars(const contract::OptimizerSpec& spec, std::vector<Segment> segments);
  int slots() const override { return 1; }
  const char* slot_name(int) const override { return "velocity"; }
  void step(std::span<float> w, std::span<const float> g, std::span<float> state,
            const UpdateArgs& args) override;

 private:
  double coefficient_;
  double epsilon_;
  float momentum_;
  std::vector<Segment> segments_;
};

// c*|w| / (|g| + wd*|w| + eps); 1 where a norm is 0.
double lars_trust(double weight_norm, double gradient_norm, double coefficient, double weight_decay,
                  double epsilon);

}  // namespace evenkeel::trainer
