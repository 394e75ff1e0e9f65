// SGD with momentum in both conventions. Made by make_optimizer(); the tests make it by hand.
//   PyTorch: g += wd*w (coupled);      v = m*v + g;     w -= lr*v;    Nesterov w -= lr*(g + m*v)
//   Keras:   w -= w*wd*lr (decoupled); v = m*v - lr*g;  w += v;       Nesterov w += m*v - lr*g
// They differ when the learning rate changes: in the Keras form old velocity keeps the old rate, unless the update
// carries a momentum correction.
#pragma once

#include <span>
#include <vector>

#include "trainer/optim/optimizer.h"
#include "trainer/optim/segments.h"

namespace evenkeel::trainer {

class Sgd : public Optimizer {
 public:
  Sgd(const contract::OptimizerSpec& spec, std::vector<Segment> segments);
  int slots() const override;
  const char* slot_name(int slot) const override;
  void step(std::span<float> w, std::span<const float> g, std::span<float> state,
            const UpdateArgs& args) override;

 private:
  contract::OptimizerConvention convention_;
  bool nesterov_;
  float momentum_;
  std::vector<Segment> segments_;
};

}  // namespace evenkeel::trainer
