// The CPU back end: owns the arenas and the compiled plans of one rank. Plans share arenas 1 to 4; arena 5
// grows to the largest. Used by one thread at a time (the training loop's); its own parallelism is OpenMP
// inside a call. oneDNN appears in this folder's sources only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/graph/graph.h"
#include "trainer/graph/plan.h"

namespace evenkeel::trainer {

// What a step reads. Spans are used in place and must stay unchanged until backward() has returned.
struct StepInput {
  std::span<const float> features;       // (batch, input_features)
  std::span<const std::int32_t> labels;  // (batch), in [-1, classes); -1: skipped
  std::span<const std::int64_t> ids =
      {};                   // (batch): index of each sample in the data set; needed by dropout alone
  std::uint64_t epoch = 0;  // with ids and seed: what dropout draws
  std::uint64_t seed = 0;
  float gradient_scale = 1;  // factor of every gradient, not of the loss
};

// Sums over the batch, never means; samples with a negative label (skipped) count nowhere.
struct LossSums {
  double loss = 0;           // natural logarithm, fp32 per sample, added in double
  std::int64_t count = 0;    // samples that took part
  std::int64_t correct = 0;  // top-1; ties go to the lower index
};

// Called during backward, on the thread that runs it, right after the step that completes the bucket; the
// slice is not written again until the next backward. index: into Plan::buckets; ascending, each once.
using BucketReady = std::function<void(int index)>;

// One compiled plan. Borrowed from the Engine, which it must not outlive.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual const Plan& plan() const = 0;

  // Input of exactly the plan's batch. An error is one of the exchange between ranks (Sync statistics); all
  // else was checked when the plan was made.
  virtual base::Result<LossSums> forward(const StepInput& input) = 0;
  // Gradients of the SUM of the last forward's losses into arena 3: every element of it is written (batch 0:
  // zeros), the sums of the running statistics too. REQUIRES: a training plan, forward() called before, on
  // this executor, with no other executor in between.
  virtual base::Status backward(const BucketReady& on_bucket_ready) = 0;
  // Where a tensor of the plan lies after forward(), as floats; empty where it has no memory. For tests: a
  // later step may have written over it.
  virtual std::span<const float> tensor(TensorId id) const = 0;

  // "dense_1 Linear: brg:avx512_core" for each primitive, for the log.
  virtual const std::vector<std::string>& kernels() const = 0;
};

// Adds `values` over all ranks, in place; every rank calls it in the same order, also one without samples.
using StatisticsExchange = std::function<base::Status(std::span<double> values)>;

struct EngineOptions {
  int threads = 1;  // OpenMP threads of this rank
  PlanOptions plan;
  std::uint64_t memory_limit_bytes = 0;  // cgroup or physical; 0 = unknown
  std::string memory_limit_source;       // for the message
  std::uint64_t other_bytes = 0;         // the data set and the like
};

class Engine {
 public:
  // graph: forward only. largest_batch: the largest training batch expected; checked against the memory
  // limit, and arenas allocated and touched for it. kInvalidInput with numbers when it does not fit; nothing
  // is allocated then.
  static base::Result<std::unique_ptr<Engine>> create(Graph graph, std::int64_t largest_batch,
                                                      EngineOptions options);
  virtual ~Engine() = default;

  // The executor of that batch size; compiled on first use and kept. Batch 0 is fine. The pointer lives as
  // long as the engine.
  virtual base::Result<Executor*> executor(std::int64_t batch, PlanMode mode) = 0;
  // That batch size will be asked for soon: begins to compile it on a thread of its own, unless it is there or begun
  // already. Allocates and changes nothing that a step uses; executor() takes it over, waits for it where it is not
  // ready, and returns its error. The destructor waits too.
  virtual void expect(std::int64_t batch, PlanMode mode) = 0;
  // Plans that executor() compiled itself, and those that it took over.
  struct Compiled {
    int here = 0, aside = 0;
  };
  virtual Compiled compiled() const = 0;
  // The training plan of largest_batch, workspace included: parameters, buckets, arenas.
  virtual const Plan& plan() const = 0;

  // For StatisticsMode::kSync on more than one rank: set before the first step, and anew for each
  // communicator.
  virtual void set_statistics_exchange(StatisticsExchange exchange) = 0;

  // The common layout of arenas 1, 3 and 4 as floats, padding included; see PlanParameter for offsets. Free
  // to read and write between steps. optimizer_state() holds plan().optimizer_slots parts, each as long as
  // parameters().
  virtual std::span<float> parameters() = 0;
  virtual std::span<float> gradients() = 0;
  virtual std::span<float> optimizer_state() = 0;
  // Arenas 1 and 3 to their ends: with the running statistics, and with the sums that they follow (see
  // PlanStatistic and Bucket for offsets).
  virtual std::span<float> parameter_arena() = 0;
  virtual std::span<float> gradient_arena() = 0;

  // One line for each degraded choice (a reference kernel), to be logged as warnings.
  virtual const std::vector<std::string>& warnings() const = 0;
};

}  // namespace evenkeel::trainer
