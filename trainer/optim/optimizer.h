// Optimizers: one pass over the flat arenas with a table of segments (which decay, which do not). Gradients
// come as SUMS over samples together with the reduced count; the division is part of the pass. Called by the
// training loop after the last bucket. One thread at a time; values only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "contract/job/spec.h"
#include "trainer/graph/plan.h"

namespace evenkeel::trainer {

struct UpdateArgs {
  double learning_rate = 0;  // as scheduled and scaled for this step
  double count = 0;          // samples in the reduced gradient, over all ranks; > 0
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // fp32 values of state for each parameter: PlanOptions::optimizer_slots. 0 for SGD without momentum.
  virtual int slots() const = 0;
  // Names of the slots for checkpoints: "velocity".
  virtual const char* slot_name(int slot) const = 0;
  // w, g: arenas 1 and 3; state: arena 4. All in the common layout of the plan. A count of 0 changes nothing
  // (no sample was committed).
  virtual void step(std::span<float> w, std::span<const float> g, std::span<float> state,
                    const UpdateArgs& args) = 0;
};

// plan: any plan of the model. May be null when only slots() is asked for (before a plan exists).
base::Result<std::unique_ptr<Optimizer>> make_optimizer(const contract::OptimizerSpec& spec,
                                                        const Plan* plan);

}  // namespace evenkeel::trainer
