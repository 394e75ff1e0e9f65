// SGD with momentum in both conventions. Made by make_optimizer(); the tests make it by hand.
//   PyTorch: g += wd*w (coupled);     v = m*v + g;     w -= lr*v
//   Keras:   w -= w*wd*lr (decoupled); v = m*v - lr*g;  w += v
// They differ when the learning rate changes: in the Keras form old velocity keeps the old rate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/optim/optimizer.h"

namespace evenkeel::trainer {

// A stretch of the common layout with one weight decay.
struct Segment {
  std::uint64_t begin = 0;  // elements
  std::uint64_t end = 0;
  double weight_decay = 0;
};

// Neighbours with the same decay are one segment; no decay at all makes the whole arena one. Null plan: none.
std::vector<Segment> segments_of(const Plan* plan, double weight_decay);

class Sgd : public Optimizer {
 public:
  Sgd(const contract::OptimizerSpec& spec, std::vector<Segment> segments);
  int slots() const override;
  const char* slot_name(int slot) const override;
  void step(std::span<float> w, std::span<const float> g, std::span<float> state,
            const UpdateArgs& args) override;

 private:
  contract::OptimizerConvention convention_;
  float momentum_;
  std::vector<Segment> segments_;
};

}  // namespace evenkeel::trainer
