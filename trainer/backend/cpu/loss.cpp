// Softmax and cross-entropy in one pass over the logits: loss = logsumexp(z) - z_y, gradient = softmax -
// label. Sums over samples; the division by the count of all ranks comes after the reduction.
#include <cmath>

#include "trainer/backend/cpu/operators.h"

namespace evenkeel::trainer {
namespace {

class Loss : public Operator {
 public:
  Loss(const Plan& plan, const PlanStep& step)
      : z_id_(step.inputs[0]),
        dz_id_(step.outputs.empty() ? kNoTensor : step.outputs[0]),
        samples_(plan.batch),
        classes_(plan.classes),
        smoothing_(static_cast<float>(step.attributes.label_smoothing)) {}

  void bind(const TensorAddresses& addresses) override {
    z_ = addresses.at(z_id_);
    dz_ = dz_id_ == kNoTensor ? nullptr : addresses.at(dz_id_);
  }

  // One thread: a few thousand exponentials, and a sum whose order never changes.
  void run(RunContext& context) noexcept override {
    for (std::int64_t n = 0; n < samples_; ++n) {
      const float* z = z_ + n * classes_;  // (K)
      float* dz = dz_ == nullptr ? nullptr : dz_ + n * classes_;
      const std::int32_t label = context.input.labels[static_cast<std::size_t>(n)];
      if (label < 0) {
        for (std::int64_t k = 0; dz != nullptr && k < classes_; ++k) dz[k] = 0.0f;
      } else {
        add_sample(z, dz, label, context);
      }
    }
  }

 private:
  // The label as a distribution: 1 - smoothing for the class itself, and smoothing spread over all K.
  // Loss = sum_k q_k (logsumexp(z) - z_k). dz may lie on z: each logit is read for the last time before its
  // place is written.
  void add_sample(const float* z, float* dz, std::int32_t label, RunContext& context) const {
    std::int64_t best = 0;
    for (std::int64_t k = 1; k < classes_; ++k) {
      if (z[k] > z[best]) best = k;
    }
    const float max = z[best];
    float margin = (1.0f - smoothing_) * (max - z[label]);
    float sum = 0.0f;
    for (std::int64_t k = 0; k < classes_; ++k) {
      if (smoothing_ > 0.0f) margin += share() * (max - z[k]);
      const float e = std::exp(z[k] - max);
      sum += e;
      if (dz != nullptr) dz[k] = e;
    }
    context.sums.loss += std::log(sum) + margin;
    context.sums.count += 1;
    // Not finite: no class has won, whatever index is left over.
    context.sums.correct += best == label && std::isfinite(sum);
    if (dz == nullptr) return;
    const float scale = 1.0f / sum;
    for (std::int64_t k = 0; k < classes_; ++k) dz[k] = dz[k] * scale - (smoothing_ > 0.0f ? share() : 0.0f);
    dz[label] -= 1.0f - smoothing_;
    if (context.input.gradient_scale == 1.0f) return;
    for (std::int64_t k = 0; k < classes_; ++k) dz[k] *= context.input.gradient_scale;
  }

  float share() const { return smoothing_ / static_cast<float>(classes_); }

  TensorId z_id_, dz_id_;
  std::int64_t samples_, classes_;
  float smoothing_;
  const float* z_ = nullptr;
  float* dz_ = nullptr;
};

}  // namespace

std::unique_ptr<Operator> make_loss(const Plan& plan, const PlanStep& step) {
  return std::make_unique<Loss>(plan, step);
}

}  // namespace evenkeel::trainer
