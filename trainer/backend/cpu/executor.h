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

  void set_exchange(const StatisticsExchange& exchange) { exchange_ = exchange; }

  const Plan& plan() const override { return plan_; }
  base::Result<LossSums> forward(const StepInput& input) override;
  base::Status backward(const BucketReady& on_bucket_ready) override;
  std::span<const float> tensor(TensorId id) const override;
  const std::vector<std::string>& kernels() const override { return kernels_; }

 private:
  CpuExecutor(Plan plan, int threads) : plan_(std::move(plan)), threads_(threads) {}
  base::Status make_operators();
  void bind_features(const float* features);
  base::Status run_step(std::size_t step);
  void report_buckets(std::size_t step, const BucketReady& on_bucket_ready);

  Plan plan_;
  int threads_;
  std::vector<std::unique_ptr<Operator>> operators_;  // by step; null where there is nothing to run
  std::vector<std::string> names_;                    // by step, for traces
  StatisticsExchange exchange_;
  RunContext context_;
  std::vector<std::string> kernels_;
  TensorAddresses addresses_;
  std::byte* gradients_ = nullptr;
  std::size_t next_bucket_ = 0;
};

}  // namespace evenkeel::trainer
