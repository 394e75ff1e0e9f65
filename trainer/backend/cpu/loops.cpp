// The operators that are one pass over memory: ReLU, sum, dropout, shortcut, and their backward.
#include <algorithm>

#include "base/hash.h"
#include "base/philox.h"
#include "trainer/backend/cpu/operators.h"

namespace evenkeel::trainer {
namespace {

class Relu : public Operator {
 public:
  Relu(const Plan& plan, const PlanStep& step)
      : x_id_(step.inputs[0]), y_id_(step.outputs[0]), count_(elements_of(plan, x_id_)) {}

  void bind(const TensorAddresses& addresses) override {
    x_ = addresses.at(x_id_);
    y_ = addresses.at(y_id_);
  }

  void run(RunContext&) noexcept override {
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

  void run(RunContext&) noexcept override {
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

class Add : public Operator {
 public:
  Add(const Plan& plan, const PlanStep& step)
      : a_id_(step.inputs[0]),
        b_id_(step.inputs[1]),
        y_id_(step.outputs[0]),
        count_(elements_of(plan, y_id_)),
        relu_(step.attributes.relu) {}

  void bind(const TensorAddresses& addresses) override {
    a_ = addresses.at(a_id_);
    b_ = addresses.at(b_id_);
    y_ = addresses.at(y_id_);
  }

  void run(RunContext&) noexcept override {
    const float* a = a_;
    const float* b = b_;
    float* y = y_;
    const bool relu = relu_;
#pragma omp parallel for simd schedule(static) if (count_ >= kParallelFrom)
    for (std::int64_t i = 0; i < count_; ++i) {
      const float sum = a[i] + b[i];
      y[i] = relu && sum < 0.0f ? 0.0f : sum;
    }
  }

 private:
  TensorId a_id_, b_id_, y_id_;
  std::int64_t count_;
  bool relu_;
  const float* a_ = nullptr;
  const float* b_ = nullptr;
  float* y_ = nullptr;
};

// The mask follows from (seed, sample, epoch, which dropout, element) alone: no rank, thread or batch changes
// it, and backward draws it again instead of keeping it.
class Dropout : public Operator {
 public:
  Dropout(const Plan& plan, const PlanStep& step)
      : x_id_(step.inputs[0]),
        y_id_(step.outputs[0]),
        samples_(plan.batch),
        features_(plan.batch == 0 ? 0 : elements_of(plan, x_id_) / plan.batch),
        limit_(static_cast<std::uint64_t>(step.attributes.rate * 4294967296.0)),
        scale_(static_cast<float>(1.0 / (1.0 - step.attributes.rate))),
        stream_(static_cast<std::uint32_t>(step.attributes.stream)) {}

  void bind(const TensorAddresses& addresses) override {
    x_ = addresses.at(x_id_);
    y_ = addresses.at(y_id_);
  }

  void run(RunContext& context) noexcept override {
    const StepInput& input = context.input;
#pragma omp parallel for schedule(static) if (samples_ * features_ >= kParallelFrom)
    for (std::int64_t n = 0; n < samples_; ++n) {
      run_sample(n, input.seed, input.epoch,
                 input.ids.empty() ? static_cast<std::uint64_t>(n)
                                   : static_cast<std::uint64_t>(input.ids[static_cast<std::size_t>(n)]));
    }
  }

 private:
  void run_sample(std::int64_t n, std::uint64_t seed, std::uint64_t epoch, std::uint64_t id) const {
    constexpr std::uint64_t kPurposeDropout = 3;  // beside those of initial values and of augmentation
    const std::uint64_t mixed = base::mix64(base::mix64(base::mix64(seed) + kPurposeDropout) + id);
    const base::PhiloxKey key = {static_cast<std::uint32_t>(mixed), static_cast<std::uint32_t>(mixed >> 32)};
    const float* x = x_ + n * features_;
    float* y = y_ + n * features_;
    for (std::int64_t i = 0; i < features_; i += 4) {
      const auto words =
          base::philox({static_cast<std::uint32_t>(i / 4), stream_, static_cast<std::uint32_t>(epoch),
                        static_cast<std::uint32_t>(epoch >> 32)},
                       key);
      for (std::int64_t k = i; k < std::min(i + 4, features_); ++k)
        y[k] = words[static_cast<std::size_t>(k - i)] < limit_ ? 0.0f : x[k] * scale_;
    }
  }

  TensorId x_id_, y_id_;
  std::int64_t samples_, features_;
  std::uint64_t limit_;
  float scale_;
  std::uint32_t stream_;
  const float* x_ = nullptr;
  float* y_ = nullptr;
};

// Both directions: `small` is the strided image with added channels, `large` the other one.
struct ShortcutShape {
  std::int64_t samples, height, width, channels;    // of large
  std::int64_t small_height, small_width, filters;  // of small
  std::int64_t stride_h, stride_w, first_channel;

  ShortcutShape(const Plan& plan, const PlanStep& step, TensorId large, TensorId small) {
    const Shape& l = tensor_of(plan, large).shape;
    const Shape& s = tensor_of(plan, small).shape;
    samples = l[0], height = l[1], width = l[2], channels = l[3];
    small_height = s[1], small_width = s[2], filters = s[3];
    stride_h = step.attributes.window.stride_h, stride_w = step.attributes.window.stride_w;
    first_channel = (filters - channels) / 2;
  }
  std::int64_t large_at(std::int64_t n, std::int64_t p, std::int64_t q) const {
    return ((n * height + p * stride_h) * width + q * stride_w) * channels;
  }
  std::int64_t small_at(std::int64_t n, std::int64_t p, std::int64_t q) const {
    return ((n * small_height + p) * small_width + q) * filters;
  }
};

class Shortcut : public Operator {
 public:
  Shortcut(const Plan& plan, const PlanStep& step, bool backward)
      : from_id_(step.inputs[0]),
        to_id_(step.outputs[0]),
        shape_(plan, step, backward ? to_id_ : from_id_, backward ? from_id_ : to_id_),
        count_(elements_of(plan, to_id_)),
        backward_(backward) {}

  void bind(const TensorAddresses& addresses) override {
    from_ = addresses.at(from_id_);
    to_ = addresses.at(to_id_);
  }

  void run(RunContext&) noexcept override {
    const ShortcutShape& s = shape_;
    std::fill_n(to_, count_, 0.0f);
#pragma omp parallel for schedule(static) if (count_ >= kParallelFrom)
    for (std::int64_t n = 0; n < s.samples; ++n) {
      for (std::int64_t p = 0; p < s.small_height; ++p) {
        for (std::int64_t q = 0; q < s.small_width; ++q) {
          const std::int64_t small = s.small_at(n, p, q) + s.first_channel;
          const std::int64_t large = s.large_at(n, p, q);
          std::copy_n(from_ + (backward_ ? small : large), s.channels, to_ + (backward_ ? large : small));
        }
      }
    }
  }

 private:
  TensorId from_id_, to_id_;
  ShortcutShape shape_;
  std::int64_t count_;
  bool backward_;
  const float* from_ = nullptr;
  float* to_ = nullptr;
};

}  // namespace

std::unique_ptr<Operator> make_relu(const Plan& plan, const PlanStep& step) {
  return std::make_unique<Relu>(plan, step);
}

std::unique_ptr<Operator> make_relu_backward(const Plan& plan, const PlanStep& step) {
  return std::make_unique<ReluBackward>(plan, step);
}

std::unique_ptr<Operator> make_add(const Plan& plan, const PlanStep& step) {
  return std::make_unique<Add>(plan, step);
}

std::unique_ptr<Operator> make_dropout(const Plan& plan, const PlanStep& step) {
  return std::make_unique<Dropout>(plan, step);
}

std::unique_ptr<Operator> make_shortcut(const Plan& plan, const PlanStep& step) {
  return std::make_unique<Shortcut>(plan, step, false);
}

std::unique_ptr<Operator> make_shortcut_backward(const Plan& plan, const PlanStep& step) {
  return std::make_unique<Shortcut>(plan, step, true);
}

}  // namespace evenkeel::trainer
