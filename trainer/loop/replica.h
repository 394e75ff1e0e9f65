// The model side of one rank: data set, compiled plans, arenas, optimizer. Knows nothing of networks,
// coordinators or files other than the data set, so that tests run several of them in one process. One thread
// at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "contract/job/spec.h"
#include "contract/messages.h"
#include "trainer/backend/cpu/engine.h"
#include "trainer/checkpoint/init_from.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/data/batch.h"
#include "trainer/data/open_dataset.h"
#include "trainer/data/prefetch.h"
#include "trainer/graph/plan_hash.h"
#include "trainer/loop/injection.h"
#include "trainer/loop/model_setup.h"
#include "trainer/loop/sharding.h"
#include "trainer/optim/optimizer.h"
#include "trainer/strategy/gradient_reduction.h"

namespace evenkeel::trainer {

struct ReplicaOptions {
  int threads = 1;                       // that compute
  int data_threads = 1;                  // that decode the records of a batch
  std::uint64_t memory_limit_bytes = 0;  // 0 = unknown
  std::string memory_limit_source;
  std::int64_t micro_batch =
      0;  // samples computed at once, whole granules; 0 = the share, or what fits into memory
  Injection injection;
};

class Replica {
 public:
  // Loads the data set, compiles the plans, allocates the arenas and fills the weights from the seed.
  static base::Result<std::unique_ptr<Replica>> make(base::Files& files,
                                                     const contract::TrainingJobSpec& spec,
                                                     const ReplicaOptions& options);

  const contract::TrainingJobSpec& spec() const { return spec_; }
  const SplitInfo& train() const { return data_.train->info(); }
  std::int64_t eval_samples() const { return data_.eval ? data_.eval->info().samples : 0; }
  // Records of the training split that were bad from the start and are skipped.
  std::int64_t skipped_records() const { return static_cast<std::int64_t>(data_.train->known_bad().size()); }
  // A cache in memory would keep this of the training split; 0: there is nothing to gain, or it is kept already, or
  // it is more than a cache takes.
  std::uint64_t decoded_bytes() const;
  // What a share is worth beside its number: bytes of its records as they are stored, which is what reading and
  // decoding them costs. 0 where all records are of one size.
  double work_of(const BatchTaken& taken) const;
  const Sharding& sharding() const { return sharding_; }
  std::int64_t micro_batch() const { return micro_batch_; }
  // What model.initFrom gave, if it was asked for.
  const std::optional<InitFromReport>& init_from() const { return init_from_; }
  Engine& engine() { return *engine_; }
  const std::vector<LayerHash>& layer_hashes() const { return layers_; }
  std::string plan_hash() const;
  // Weights and optimizer state as they go into a checkpoint: views into the arenas.
  std::vector<TensorView> weights();
  std::vector<TensorView> optimizer_state();
  // Of weights and optimizer state: equal on all ranks at every step boundary.
  std::string parameter_hash();

  // Updates of the weights that the optimizer has made since its state began; goes with the state.
  std::int64_t optimizer_steps() const { return optimizer_steps_; }
  void set_optimizer_steps(std::int64_t steps) { optimizer_steps_ = steps; }
  // Global batch that the learning rate of the last update was for; 0: not known. Goes with the state, too.
  double rate_batch() const { return rate_batch_; }
  void set_rate_batch(double batch) { rate_batch_ = batch; }
  // Whom Sync statistics are exchanged with; needed anew for each communicator.
  void join(Collective& collective);

  // Compiles what a share of this size needs, where that is not done yet: a batch that is new takes a while.
  void prepare_share(const PositionRanges& ranges);
  // A share that will be read soon: its records are read ahead, and a batch that is new is compiled, each on a thread
  // of its own.
  void expect_share(std::int64_t epoch, const PositionRanges& ranges);
  void expect_share(std::int64_t epoch, std::int64_t begin, std::int64_t end) {
    expect_share(epoch, {{begin, end}});
  }

  // Samples of the present epoch, where it is not the data set once: the length of epochs for the learning rate.
  void set_epoch_samples(std::int64_t samples) { epoch_samples_ = samples; }
  std::int64_t epoch_samples() const { return epoch_samples_ > 0 ? epoch_samples_ : train().samples; }

  // Training records that cannot be read, here or on another rank: they are not tried again. kCorruptData where they
  // are more than spec.dataset.onBadRecord allows.
  base::Status skip_from_now_on(const std::vector<std::int64_t>& ids);
  std::vector<std::int64_t> skipped_ids() const { return train_reader_->skipped_ids(); }

  // Seconds that each reduction of the present step is to be late: for whoever calls it.
  double injected_network_seconds() const { return injection_.network_seconds(); }
  void inject_for_step(std::int64_t step) { injection_.set_step(step); }
  const Injection& injection() const { return injection_; }
  // Before a reduction of gradients: this rank's are lost, if that is injected.
  void inject_into_gradients();
  // A record could not be read, by read_share() or evaluate(): the fault lies in the data set and nowhere
  // else.
  bool data_failed() const { return data_failed_; }

  // One training step, in this order; forward and backward for each micro-batch of the share that was read,
  // from 0 to micro_batches() - 1. An empty share is one empty micro-batch.
  base::Result<BatchTaken> read_share(std::int64_t epoch, const PositionRanges& ranges);
  base::Result<BatchTaken> read_share(std::int64_t epoch, std::int64_t begin, std::int64_t end) {
    return read_share(epoch, {{begin, end}});
  }
  int micro_batches() const;
  base::Result<StepSums> forward(int micro);
  base::Status backward(int micro, GradientReduction& reduction);
  // spec.training.reproducible: the sums of this rank's units, for the reduction; else null.
  FixedPointSums* fixed_sums() { return spec_.training.reproducible ? &fixed_ : nullptr; }
  // Gradients are sums over all ranks by now. Error: kNumerical, and the weights are untouched.
  struct Applied {
    double learning_rate = 0;
    double gradient_norm = 0;  // of the mean gradient
    double mean_square = 0;    // squared norm of the gradient divided by its samples, whatever the loss divides by
  };
  base::Result<Applied> apply(const contract::StepPlan& plan, const ReducedSums& sums);

  // Sums over [begin, end) of the evaluation set, in file order.
  base::Result<EvaluationSums> evaluate(std::int64_t begin, std::int64_t end);

  // Training samples that the whole job takes: the length of a learning rate schedule.
  std::int64_t planned_samples() const;

 private:
  Replica(const contract::TrainingJobSpec& spec, SplitPair data) : spec_(spec), data_(std::move(data)) {}
  base::Status build(base::Files& files, const ReplicaOptions& options);
  base::Status create_engine(ModelSetup setup, const ReplicaOptions& options);
  base::Status check_micro_batch(std::int64_t micro_batch, std::int64_t share, std::int64_t granule) const;
  base::Status compile_known_batches();
  base::Status create_readers(const ReplicaOptions& options);
  StepInput input_of(int micro) const;
  std::int64_t at_once(std::int64_t samples);
  void compile_ahead(std::int64_t samples);
  void slow_down(double seconds) const;
  void give_stand_ins();
  base::Status add_unit(int micro, bool last, GradientReduction& reduction);
  void keep_gradients(int micro);
  double divisor(const contract::StepPlan& plan, const ReducedSums& sums) const;
  std::vector<TensorView> views(std::span<float> arena, const std::string& suffix);

  const contract::TrainingJobSpec spec_;
  const SplitPair data_;
  Sharding sharding_;
  std::int64_t epoch_samples_ = 0;  // 0: the data set's
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Optimizer> optimizer_;
  std::int64_t optimizer_steps_ = 0;
  double rate_batch_ = 0;
  std::int64_t micro_batch_ = 0;
  std::int64_t at_once_ = 1;   // samples of the share that was read that are computed together
  bool whole_shares_ = false;  // statistics over a share need all of it at once, however large it becomes
  bool splits_ = false;        // larger shares than micro_batch_ are known not to fit, or not wanted
  std::int64_t evaluation_batch_ = 1;
  std::optional<BatchReader> train_reader_;
  std::optional<BatchReader> eval_reader_;
  std::unique_ptr<Prefetcher> prefetcher_;  // uses train_reader_: goes before it
  std::optional<InitFromReport> init_from_;
  std::vector<LayerHash> layers_;
  HostBatch batch_;
  BatchTaken taken_;
  bool data_failed_ = false;
  Injection injection_;
  std::int64_t epoch_ = 0;             // of the batch
  Executor* executor_ = nullptr;       // of the micro-batch
  FixedPointSums fixed_;
  std::vector<float> kept_gradients_;  // sums over the micro-batches before the last; as long as arena 3
};

}  // namespace evenkeel::trainer
