// The executable form of a plan's steps: made once when the plan is compiled, bound to memory, then run each
// step. Private to this folder. Run by the engine's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/backend/cpu/engine.h"
#include "trainer/graph/plan.h"

namespace evenkeel::trainer {

// Where the plan's tensors lie now.
struct TensorAddresses {
  std::vector<float*> of_tensor;  // by TensorId; null where a tensor has no memory
  std::byte* workspace = nullptr;

  float* at(TensorId id) const { return of_tensor[static_cast<std::size_t>(id)]; }
};

class Operator {
 public:
  virtual ~Operator() = default;
  // Again whenever an arena has moved, or the caller's features lie elsewhere.
  virtual void bind(const TensorAddresses& addresses) = 0;
  // A failure here is a broken invariant: everything was checked when the operator was made.
  virtual void run() noexcept = 0;
  virtual std::uint64_t workspace_bytes() const { return 0; }
  virtual std::string kernel() const { return "own"; }
};

// Linear and its two backward operators by oneDNN. kInternal with oneDNN's own words when it refuses the
// shapes.
base::Result<std::unique_ptr<Operator>> make_linear(const Plan& plan, const PlanStep& step);

// Own loops (fp32).
std::unique_ptr<Operator> make_relu(const Plan& plan, const PlanStep& step);
std::unique_ptr<Operator> make_relu_backward(const Plan& plan, const PlanStep& step);

// Fused softmax and cross-entropy; reads labels and leaves sums at run time, so it has two members more.
class LossOperator : public Operator {
 public:
  virtual void set_labels(std::span<const std::int32_t> labels) = 0;
  virtual const LossSums& sums() const = 0;
};
std::unique_ptr<LossOperator> make_loss(const Plan& plan, const PlanStep& step);

}  // namespace evenkeel::trainer
