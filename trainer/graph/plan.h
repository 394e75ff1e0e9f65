// The compiled step: arenas in bytes, a list of steps over them, gradient buckets. A value that prints
// itself; made before anything is allocated. One plan for each local batch size; all plans of a model have
// the same arenas 1 to 4, so they share them, and arena 5 is as large as the largest asks. Executed by
// trainer/backend. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/graph/autodiff.h"
#include "trainer/graph/graph.h"

namespace evenkeel::trainer {

// One allocation each, kArenaAlignment bytes. Arenas 1, 3 and every slot of 4 begin with one common layout: a
// parameter, its gradient and its optimizer state lie at the same offset, in the order in which backward
// completes the gradients. So the optimizer is one pass, and every bucket is a slice.
enum class Arena {
  kParameters = 0,   // 1: fp32 master; behind the parameters the running statistics
  kComputeCopy = 1,  // 2: low-precision copy; empty in fp32
  kGradients = 2,    // 3; behind the gradients the sums that the running statistics follow
  kOptimizer = 3,    // 4: slots x the common layout
  kActivations = 4,  // 5: activations by liveness, then the workspace
  kExternal = 5,     // the caller's memory (the features)
};
inline constexpr int kArenaCount = 5;
inline constexpr std::uint64_t kArenaAlignment = 64;
constexpr std::uint64_t align_up(std::uint64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}
inline constexpr std::uint64_t kDefaultBucketBytes = std::uint64_t{1} << 20;

// Over which samples batch normalisation takes its statistics. kGhost: fixed groups of consecutive samples,
// the last may be short. kLocal: the local batch. kSync: the batches of all ranks.
enum class StatisticsMode { kGhost, kLocal, kSync };

struct PlanOptions {
  double bucket_mib = 0;    // 0 = kDefaultBucketBytes
  int optimizer_slots = 1;  // fp32 values of state for each parameter (trainer/optim: Optimizer::slots())
  StatisticsMode statistics = StatisticsMode::kGhost;
  std::int64_t group = 16;     // kGhost: samples
  double label_smoothing = 0;  // training plans
  bool keep_all = false;  // every tensor keeps its own memory to the end: for tests that look at all of them
  // Told the graph after each pass ("fuse_relu"); may be empty.
  std::function<void(const char* pass, const Graph& graph)> on_pass = {};
};

struct PlanTensor {
  std::string name;
  Shape shape;  // with the batch filled in
  TensorRole role = TensorRole::kActivation;
  Arena arena = Arena::kActivations;
  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;
  TensorId shares_with = kNoTensor;  // lies in the memory of that tensor (views, in-place operators)
  int first_step = -1;               // made by / last read by these steps
  int last_step = -1;
};

struct PlanStep {
  OpKind op = OpKind::kFlatten;
  std::string layer;
  Phase phase = Phase::kForward;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  OpAttributes attributes;
  std::int64_t flop = 0;
  std::int64_t moved_bytes = 0;  // read and written, each tensor once
};

// A parameter's place, the same in arenas 1, 3 and each slot of 4. In the order of the model.
struct PlanParameter {
  std::string name;  // "dense_1.kernel"
  Shape shape;       // (in, units), row-major
  TensorId tensor = kNoTensor;
  TensorId gradient = kNoTensor;      // kNoTensor in an evaluation plan
  std::uint64_t offset_elements = 0;  // in floats from the start of the arena
  std::int64_t elements = 0;
  bool decays = false;
  InitializerKind initializer = InitializerKind::kZeros;
  std::int64_t fan_in = 0;
  std::int64_t fan_out = 0;
};

// Running mean and variance of one batch normalisation, and the sums of a step that they follow.
struct PlanStatistic {
  std::string layer;
  std::int64_t channels = 0;
  double momentum = 0;                     // share of the new
  std::uint64_t mean_offset_elements = 0;  // in arena 1; (channels)
  std::uint64_t variance_offset_elements = 0;
  // In arena 3; (2 * channels + 2): n * mean, n * variance, n of the means, n of the variances, over all
  // groups.
  std::uint64_t sums_offset_elements = 0;
};

// A slice of arena 3 (and of nothing else), padding included: padding is zero on every rank.
struct Bucket {
  std::uint64_t offset_elements = 0;
  std::uint64_t elements = 0;
  int ready_after_step = -1;  // index into Plan::steps: complete once that step has run
};

struct Plan {
  PlanMode mode = PlanMode::kTraining;
  std::int64_t batch = 0;
  std::int64_t input_features = 0;  // floats of one sample
  std::int64_t classes = 0;         // width of the logits
  TensorId input = kNoTensor;
  TensorId logits = kNoTensor;
  StatisticsMode statistics_mode = StatisticsMode::kGhost;
  std::int64_t group = 0;  // samples that share batch statistics; the batch itself where not kGhost
  std::vector<PlanTensor> tensors;
  std::vector<PlanStep> steps;
  int backward_begin = 0;  // index of the first backward step; steps.size() if none
  std::vector<PlanParameter> parameters;
  std::vector<PlanStatistic> statistics;  // in the order of the model
  std::vector<Bucket> buckets;            // in the order of completion; empty in an evaluation plan
  std::array<std::uint64_t, kArenaCount> arena_bytes{};
  std::uint64_t activation_bytes = 0;  // part of arena 5
  std::uint64_t workspace_bytes = 0;   // part of arena 5, behind the activations; filled in by the backend
  int optimizer_slots = 0;
  std::uint64_t layout_elements = 0;  // of the common layout, padding included
  std::int64_t flop = 0;              // of one step
  std::int64_t moved_bytes = 0;       // of one step, each operator reading and writing its tensors once

  std::int64_t parameter_count() const;  // without padding
  std::uint64_t common_layout_elements() const { return layout_elements; }
  std::uint64_t total_bytes() const;
};

// graph: forward only, as trainer/model makes it. batch 0 is a plan without memory or work: such a rank sends
// zeros.
base::Result<Plan> compile_plan(const Graph& graph, std::int64_t batch, PlanMode mode,
                                const PlanOptions& options);

// Out of memory before anything is allocated. limit_bytes 0 = unknown, always ok. `limit_source` names it:
// "cgroup". other_bytes: what the process needs beside the arenas (the data set).
base::Status check_memory(const Plan& plan, std::uint64_t other_bytes, std::uint64_t limit_bytes,
                          const std::string& limit_source);

// The plan for people: arenas, peak, FLOP and bytes of a step, buckets, every tensor, every step.
std::string to_text(const Plan& plan);

}  // namespace evenkeel::trainer
