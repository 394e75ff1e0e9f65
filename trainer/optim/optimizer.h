// Optimizers: one pass over the flat arenas with a table of segments (which decay, which do not). Gradients
// come as SUMS over samples together with the divisor; the division and the clip factor are part of the pass.
// Called by the training loop after the last bucket. One thread at a time; values only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "contract/job/spec.h"
#include "trainer/graph/plan.h"

namespace evenkeel::trainer {

struct UpdateArgs {
  double learning_rate = 0;   // as scheduled and scaled for this step
  double count = 0;           // divisor of the reduced gradient: its samples over all ranks, as a rule
  double gradient_scale = 1;  // clip_scale()
  std::int64_t step = 1;      // number of this update of the optimizer, from 1: the bias correction of Adam
  // momentum_correction() of learning_rate.h: of this one update, for velocity that holds the learning rate.
  double momentum_correction = 1;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // fp32 values of state for each parameter: PlanOptions::optimizer_slots. 0 for SGD without momentum.
  virtual int slots() const = 0;
  // Names of the slots for checkpoints: "velocity".
  virtual const char* slot_name(int slot) const = 0;
  // w, g: arenas 1 and 3; state: arena 4, slots() times the common layout of the plan. Neither padding nor
  // what lies behind the layout (running statistics) is touched. A count of 0 changes nothing (no sample was
  // committed).
  virtual void step(std::span<float> w, std::span<const float> g, std::span<float> state,
                    const UpdateArgs& args) = 0;
};

// plan: any plan of the model. May be null when only slots() is asked for (before a plan exists).
base::Result<std::unique_ptr<Optimizer>> make_optimizer(const contract::OptimizerSpec& spec,
                                                        const Plan* plan);

// Factor that shortens the mean gradient to clip_norm where it is longer. squared_norm_of_sum: of the reduced
// gradient before it is divided by count. clip_norm 0: off, the factor is 1.
double clip_scale(double squared_norm_of_sum, double count, double clip_norm);

}  // namespace evenkeel::trainer
