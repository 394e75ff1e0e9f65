// From a job and its data set to what the engine compiles: the model's graph and the options of its plans.
// Used by every rank (replica.h) and by `evenkeel-trainer plan`. Pure.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "contract/job/spec.h"
#include "trainer/data/split.h"
#include "trainer/graph/plan.h"
#include "trainer/optim/optimizer.h"

namespace evenkeel::trainer {

struct ModelSetup {
  Graph graph;  // forward only
  PlanOptions plan;
};

// kInvalidInput: what the model or the batch cannot be, naming layer or field.
base::Result<ModelSetup> set_up_model(const contract::TrainingJobSpec& spec, const SplitInfo& train);

// The largest share of a step that a rank can be given; whole granules (contract/job/sample_groups.h).
std::int64_t largest_share(const contract::TrainingJobSpec& spec, std::int64_t train_samples);

// The size of the micro-batches that a share is computed in: `share` where its plan fits into memory, else
// the largest halving in whole granules that does. The error of check_memory() where not even one granule
// fits. other_bytes: beside the arenas.
struct MemoryBudget {
  std::uint64_t limit_bytes = 0;  // 0 = unknown
  std::string source;
  std::uint64_t other_bytes = 0;
};
base::Result<std::int64_t> choose_micro_batch(const ModelSetup& setup, std::int64_t share,
                                              std::int64_t granule, const MemoryBudget& budget);

// A batch for evaluation that needs no more memory than training does; at most 256.
base::Result<std::int64_t> choose_evaluation_batch(const ModelSetup& setup, std::int64_t micro_batch);

}  // namespace evenkeel::trainer
