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

inline const PlanTensor& tensor_of(const Plan& plan, TensorId id) {
  return plan.tensors[static_cast<std::size_t>(id)];
}
inline std::int64_t elements_of(const Plan& plan, TensorId id) {
  return static_cast<std::int64_t>(tensor_of(plan, id).size_bytes / sizeof(float));
}

// Below this many elements a parallel region costs more than it saves (about 5 us for a wake-up).
inline constexpr std::int64_t kParallelFrom = 16384;

// What one pass reads and leaves behind; lives in the executor.
struct RunContext {
  StepInput input;
  LossSums sums;
  const StatisticsExchange* exchange = nullptr;  // null or empty: one rank
  base::Status failure;                          // of the exchange; the executor stops at it
};

class Operator {
 public:
  virtual ~Operator() = default;
  // Again whenever an arena has moved, or the caller's features lie elsewhere.
  virtual void bind(const TensorAddresses& addresses) = 0;
  // Anything but a failed exchange is a broken invariant: all was checked when the operator was made.
  virtual void run(RunContext& context) noexcept = 0;
  virtual std::uint64_t workspace_bytes() const { return 0; }
  virtual std::string kernel() const { return "own"; }
};

using OperatorResult = base::Result<std::unique_ptr<Operator>>;

// By oneDNN: a product and its two backward operators. kInternal with oneDNN's own words when it refuses the
// shapes.
OperatorResult make_linear(const Plan& plan, const PlanStep& step);
OperatorResult make_convolution(const Plan& plan, const PlanStep& step);

// Own loops (fp32).
std::unique_ptr<Operator> make_relu(const Plan& plan, const PlanStep& step);
std::unique_ptr<Operator> make_relu_backward(const Plan& plan, const PlanStep& step);
std::unique_ptr<Operator> make_add(const Plan& plan, const PlanStep& step);
std::unique_ptr<Operator> make_dropout(const Plan& plan, const PlanStep& step);  // forward and backward
std::unique_ptr<Operator> make_shortcut(const Plan& plan, const PlanStep& step);
std::unique_ptr<Operator> make_shortcut_backward(const Plan& plan, const PlanStep& step);
std::unique_ptr<Operator> make_pool(const Plan& plan,
                                    const PlanStep& step);  // all kinds, forward and backward
std::unique_ptr<Operator> make_batch_norm(const Plan& plan, const PlanStep& step);  // training and inference
std::unique_ptr<Operator> make_batch_norm_backward(const Plan& plan, const PlanStep& step);
// Fused softmax and cross-entropy; leaves its sums in the context.
std::unique_ptr<Operator> make_loss(const Plan& plan, const PlanStep& step);

}  // namespace evenkeel::trainer
