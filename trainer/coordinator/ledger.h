// The sample ledger: which positions of the epoch's order each step and rank takes, what is committed, and
// where the job stands. A sample is consumed when the step that holds it is committed by every rank; 0 are
// lost and 0 are done twice. Owned by Coordination (coordination.h). Pure: no clock, no socket; not thread
// safe.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <vector>

#include "base/result.h"
#include "contract/messages.h"
#include "trainer/coordinator/ledger_ranges.h"
#include "trainer/coordinator/shares.h"

namespace evenkeel::trainer {

// How the samples of an epoch come to the ranks (training-semantics 6).
enum class Dealing {
  kRecord,  // a step's samples are consecutive positions of one order, cut into shares
  kFile,    // ranks own files: the order keeps each file together, and a rank takes its share from its own
  kPasses,  // every rank sees everything: an epoch is `passes` times the data set, and a rank owns a pass
};

struct LedgerConfig {
  std::int64_t train_samples = 0;  // D
  std::int64_t eval_samples = 0;   // 0: no evaluation is planned
  int ranks = 1;
  std::int64_t global_batch = 1;
  std::int64_t granule = 1;            // samples that stay together; see shares.h
  std::optional<std::int64_t> epochs;  // exactly one of the two
  std::optional<std::int64_t> steps;
  std::int64_t evaluate_every = 1;  // epochs; 0 = only at the end
  bool checkpoints = false;         // a checkpoint path is set
  std::int64_t checkpoint_every_steps = 500;
  bool checkpoint_on_stop = true;
  Dealing dealing = Dealing::kRecord;
  std::int64_t passes = 1;                 // kPasses: as many as the job has ranks
  std::vector<std::int64_t> file_samples;  // kFile: of each file, in the order of the ids
  bool shuffle = true;                     // kFile: whether files change places from epoch to epoch, and by what
  std::uint64_t shuffle_seed = 42;
};

// Steps over which the learning rate follows a change of the global batch (training-semantics 2).
inline constexpr std::int64_t kRateRampSteps = 100;

// How a step is divided among the ranks: evenly, or so that all take as long.
struct Division {
  // Seconds of own work for one sample, by rank; empty: evenly. A rank of the group that is not known here
  // takes the mean of the others.
  std::vector<std::optional<double>> seconds_per_sample;
  ShareLimits limits;
};

// Everything before it is committed. Invariant: cursor < samples of the epoch: a full epoch is (epoch + 1, 0). Where
// ranks own parts of the order, `cursor` samples are committed, and which they are is in the ranges.
struct LedgerPosition {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::int64_t cursor = 0;
};

class Ledger {
 public:
  // kInvalidInput: no samples, no ranks, a batch below 1, neither or both of epochs and steps.
  static base::Result<Ledger> make(LedgerConfig config);

  // While no plan is open; the group follows with regroup(). kCorruptData when the position cannot be of this data
  // set, or was written under another way of dealing.
  base::Status restore(const contract::CheckpointPosition& position);

  // Commits after which the job is done. Changes with restore() and set_global_batch() alone.
  std::int64_t target_steps() const { return target_steps_; }
  const LedgerPosition& committed() const { return committed_; }
  std::int64_t issued_step() const { return planned_.step; }
  bool complete() const { return committed_.step >= target_steps_; }
  // No plan will follow: all are issued up to the target or up to the stop.
  bool all_issued() const { return planned_.step >= target_steps_ || stopped_; }

  // The next plan, or nothing when all are issued. The last batch of an epoch is what is left of it.
  std::optional<contract::StepPlan> plan_next(const contract::Fence& fence);
  // The next plan is the last one; where none is left to plan the job simply ends as planned.
  void request_stop() { stop_requested_ = true; }

  // Whether an evaluation belongs to step `step`, after which the job stands at `after`.
  bool evaluates(std::int64_t step, const LedgerPosition& after) const;
  // The oldest plan that is not committed yet, or null.
  const contract::StepPlan* oldest_open() const { return open_.empty() ? nullptr : &open_.front(); }
  // All ranks committed the oldest open plan. kInternal when it is another step.
  base::Status commit(std::int64_t step);

  // Who takes part from the next plan on, ascending. Open plans are void: their samples are planned anew, at
  // the same positions of the order and under the same step numbers.
  void regroup(std::vector<int> ranks);
  const std::vector<int>& group() const { return group_; }
  // Samples of a step from the next plan on; open plans must be committed before. The learning rate follows
  // over kRateRampSteps.
  void set_global_batch(std::int64_t samples);
  // How the samples of a step are divided from the next plan on.
  void set_division(Division division) { division_ = std::move(division); count_shards(); }
  const Division& division() const { return division_; }

  // Samples of an epoch: the data set, or as many times as there are passes.
  std::int64_t epoch_samples(std::int64_t epoch) const;
  // What is not committed of the present epoch, and whose it is. Empty: nobody owns anything, or nothing is dealt.
  const LedgerRanges& owned() const { return owned_; }

  // Records that cannot be read: skipped now and, by whoever restores from here, for good.
  void mark_poison(const std::vector<std::int64_t>& ids);
  const std::set<std::int64_t>& poison() const { return poison_; }

  // Training samples by rank since the job began. May be longer than the group after the job became smaller.
  const std::vector<std::int64_t>& consumed() const { return consumed_; }
  std::int64_t samples() const;  // their sum
  // By rank: what its shares of an epoch add up to, as they are divided now.
  const std::vector<std::int64_t>& shard_samples() const { return shard_samples_; }
  const LedgerConfig& config() const { return config_; }

 private:
  explicit Ledger(LedgerConfig config);
  std::int64_t steps_to_target() const;
  void normalise(LedgerPosition& position) const;
  base::Status restore_ranges(const contract::CheckpointPosition& position);
  LedgerRanges deal(std::int64_t epoch) const;
  void count_shards();
  std::vector<std::int64_t> even_shares(std::int64_t samples, std::int64_t step) const;
  std::vector<std::optional<double>> costs_of_the_group() const;
  std::vector<std::int64_t> shares(std::int64_t samples, std::int64_t step) const;  // by rank
  double rate_batch(std::int64_t step) const;

  LedgerConfig config_;
  LedgerPosition committed_;
  LedgerPosition planned_;
  std::deque<contract::StepPlan> open_;
  LedgerRanges owned_, planned_owned_;   // as committed_ and planned_
  std::deque<LedgerRanges> open_owned_;  // what is left after each open plan
  bool tell_all_ = true;                 // with the next plan: the ranks may not know who owns what
  std::int64_t restored_epoch_ = -1, restored_epoch_samples_ = 0;
  std::optional<std::vector<int>> before_;  // who took part before what was restored
  std::set<std::int64_t> poison_;
  std::vector<std::int64_t> consumed_;
  std::vector<std::int64_t> shard_samples_;
  std::vector<int> group_;
  Division division_;
  std::int64_t rate_from_batch_ = 0, rate_from_step_ = 0;  // where the rate's way to global_batch began
  std::int64_t target_steps_ = 0;
  bool stop_requested_ = false;
  bool stopped_ = false;  // a plan with stop_after is issued
};

}  // namespace evenkeel::trainer
