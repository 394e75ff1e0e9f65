// The model side of one rank: data set, compiled plans, arenas, optimizer. Knows nothing of networks,
// coordinators or files other than the data set, so that tests run several of them in one process. One thread
// at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "contract/job/spec.h"
#include "contract/messages.h"
#include "trainer/backend/cpu/engine.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/data/batch.h"
#include "trainer/data/idx_reader.h"
#include "trainer/graph/plan_hash.h"
#include "trainer/optim/optimizer.h"
#include "trainer/strategy/gradient_reduction.h"

namespace evenkeel::trainer {

struct ReplicaOptions {
  int threads = 1;
  std::uint64_t memory_limit_bytes = 0;  // 0 = unknown
  std::string memory_limit_source;
};

class Replica {
 public:
  // Loads the data set, compiles the plans, allocates the arenas and fills the weights from the seed.
  static base::Result<std::unique_ptr<Replica>> make(base::Files& files,
                                                     const contract::TrainingJobSpec& spec,
                                                     const ReplicaOptions& options);

  const contract::TrainingJobSpec& spec() const { return spec_; }
  const Dataset& train() const { return data_.train; }
  std::int64_t eval_samples() const { return data_.eval ? data_.eval->samples : 0; }
  Engine& engine() { return *engine_; }
  const std::vector<LayerHash>& layer_hashes() const { return layers_; }
  std::string plan_hash() const;
  // Weights and optimizer state as they go into a checkpoint: views into the arenas.
  std::vector<TensorView> weights();
  std::vector<TensorView> optimizer_state();
  // Of weights and optimizer state: equal on all ranks at every step boundary.
  std::string parameter_hash();

  // One training step, in this order; each on the share that was read.
  BatchTaken read_share(std::int64_t epoch, std::int64_t begin, std::int64_t end);
  base::Result<StepSums> forward();
  void backward(GradientReduction& reduction);
  // Gradients are sums over all ranks by now. Error: kNumerical, and the weights are untouched.
  struct Applied {
    double learning_rate = 0;
    double gradient_norm = 0;  // of the mean gradient
  };
  base::Result<Applied> apply(const contract::StepPlan& plan, const ReducedSums& sums);

  // Sums over [begin, end) of the evaluation set, in file order.
  base::Result<EvaluationSums> evaluate(std::int64_t begin, std::int64_t end);

  // Training samples that the whole job takes: the length of a learning rate schedule.
  std::int64_t planned_samples() const;

 private:
  Replica(const contract::TrainingJobSpec& spec, DatasetPair data) : spec_(spec), data_(std::move(data)) {}
  base::Status build(const ReplicaOptions& options);
  std::vector<TensorView> views(std::span<float> arena, const std::string& suffix);

  const contract::TrainingJobSpec spec_;
  const DatasetPair data_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<BatchReader> train_reader_;
  std::unique_ptr<BatchReader> eval_reader_;
  std::vector<LayerHash> layers_;
  HostBatch batch_;
  Executor* executor_ = nullptr;  // of the batch
};

// The largest share of a step that a rank can be given.
std::int64_t largest_share(const contract::TrainingJobSpec& spec, std::int64_t train_samples);

}  // namespace evenkeel::trainer
