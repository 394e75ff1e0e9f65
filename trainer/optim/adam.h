// Adam and AdamW in both conventions. Made by make_optimizer(); the tests make it by hand. At update t:
//   m = b1*m + (1-b1)*g;  v = b2*v + (1-b2)*g*g
//   PyTorch: w -= lr * (m/(1-b1^t)) / (sqrt(v/(1-b2^t)) + eps)
//   Keras:   w -= lr * sqrt(1-b2^t)/(1-b1^t) * m / (sqrt(v) + eps)
// Epsilon stands at another place, so the two differ most where gradients are as small as it. Decay: AdamW,
// and all of Keras, w -= w*wd*lr first; Adam in PyTorch g += wd*w.
#pragma once

#include <span>
#include <vector>

#include "trainer/optim/optimizer.h"
#include "trainer/optim/segments.h"

namespace evenkeel::trainer {

class Adam : public Optimizer {
 public:
  Adam(const contract::OptimizerSpec& spec, std::vector<Segment> segments);
  int slots() const override { return 2; }
  const char* slot_name(int slot) const override { return slot == 0 ? "first_moment" : "second_moment"; }
  void step(std::span<float> w, std::span<const float> g, std::span<float> state,
            const UpdateArgs& args) override;

 private:
  contract::OptimizerConvention convention_;
  bool coupled_;
  double beta1_;
  double beta2_;
  double epsilon_;
  std::vector<Segment> segments_;
};

// 1e-8 in PyTorch's convention, 1e-7 in Keras', where the job does not say.
double adam_epsilon(const contract::OptimizerSpec& spec);

}  // namespace evenkeel::trainer
