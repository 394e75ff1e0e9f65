// A plan made executable. Private to this folder; users see Executor in engine.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/backend/cpu/engine.h"
#include "trainer/backend/cpu/operators.h"

namespace evenkeel::trainer {

// Start of each arena, by Arena.
using ArenaStarts = std::array<std::byte*, kArenaCount>;

class CpuExecutor : public Executor {
 public:
  // Makes the operators and so learns the workspace: plan().workspace_bytes and arena 5 are then complete. No
  // memory yet.
  static base::Result<std::unique_ptr<CpuExecutor>> compile(Plan plan, int threads);

  void bind(const ArenaStarts& arenas);

  const Plan& plan() const override { return plan_; }
  LossSums forward(std::span<const float> features, std::span<const std::int32_t> labels) override;
  void backward(const BucketReady& on_bucket_ready) override;
  const std::vector<std::string>& kernels() const override { return kernels_; }

 private:
  CpuExecutor(Plan plan, int threads) : plan_(std::move(plan)), threads_(threads) {}
  base::Status make_operators();
  void bind_features(const float* features);
  void report_buckets(std::size_t step, const BucketReady& on_bucket_ready);

  Plan plan_;
  int threads_;
  std::vector<std::unique_ptr<Operator>> operators_;  // by step; null for views
  LossOperator* loss_ = nullptr;                      // one of operators_
  std::vector<std::string> kernels_;
  TensorAddresses addresses_;
  std::byte* gradients_ = nullptr;
  std::size_t next_bucket_ = 0;
};

}  // namespace evenkeel::trainer
