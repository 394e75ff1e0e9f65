// The operators that are one pass over memory: ReLU and its backward.
#include <algorithm>

#include "trainer/backend/cpu/operators.h"

namespace evenkeel::trainer {
namespace {

// Below this many elements a parallel region costs more than it saves (about 5 us for a wake-up).
constexpr std::int64_t kParallelFrom = 16384;

std::int64_t elements_of(const Plan& plan, TensorId id) {
  return static_cast<std::int64_t>(plan.tensors[static_cast<std::size_t>(id)].size_bytes / sizeof(float));
}

class Relu : public Operator {
 public:
  Relu(const Plan& plan, const PlanStep& step)
      : x_id_(step.inputs[0]), y_id_(step.outputs[0]), count_(elements_of(plan, x_id_)) {}

  void bind(const TensorAddresses& addresses) override {
    x_ = addresses.at(x_id_);
    y_ = addresses.at(y_id_);
  }

  void run() noexcept override {
    const float* x = x_;
    float* y = y_;
#pragma omp parallel for simd schedule(static) if (count_ >= kParallelFrom)
    for (std::int64_t i = 0; i < count_; ++i)
      y[i] = x[i] < 0.0f ? 0.0f : x[i];  // lets NaN through, to be seen
  }

 private:
  TensorId x_id_, y_id_;
  std::int64_t count_;
  const float* x_ = nullptr;
  float* y_ = nullptr;
};

class ReluBackward : public Operator {
 public:
  ReluBackward(const Plan& plan, const PlanStep& step)
      : y_id_(step.inputs[0]),
        dy_id_(step.inputs[1]),
        dx_id_(step.outputs[0]),
        count_(elements_of(plan, dx_id_)) {}

  void bind(const TensorAddresses& addresses) override {
    y_ = addresses.at(y_id_);
    dy_ = addresses.at(dy_id_);
    dx_ = addresses.at(dx_id_);
  }

  void run() noexcept override {
    const float* y = y_;
    const float* dy = dy_;
    float* dx = dx_;
#pragma omp parallel for simd schedule(static) if (count_ >= kParallelFrom)
    for (std::int64_t i = 0; i < count_; ++i) dx[i] = y[i] > 0.0f ? dy[i] : 0.0f;
  }

 private:
  TensorId y_id_, dy_id_, dx_id_;
  std::int64_t count_;
  const float* y_ = nullptr;
  const float* dy_ = nullptr;
  float* dx_ = nullptr;
};

}  // namespace

std::unique_ptr<Operator> make_relu(const Plan& plan, const PlanStep& step) {
  return std::make_unique<Relu>(plan, step);
}

std::unique_ptr<Operator> make_relu_backward(const Plan& plan, const PlanStep& step) {
  return std::make_unique<ReluBackward>(plan, step);
}

}  // namespace evenkeel::trainer
