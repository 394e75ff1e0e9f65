// The sample ledger: which positions of the epoch's order each step and rank takes, what is committed, and
// where the job stands. A sample is consumed when the step that holds it is committed by every rank; 0 are
// lost and 0 are done twice. Owned by Coordination (coordination.h). Pure: no clock, no socket; not thread
// safe.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/result.h"
#include "contract/messages.h"

namespace evenkeel::trainer {

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
};

// Everything before it is committed. Invariant: cursor < train_samples: a full epoch is (epoch + 1, 0).
struct LedgerPosition {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::int64_t cursor = 0;
};

class Ledger {
 public:
  // kInvalidInput: no samples, no ranks, a batch below 1, neither or both of epochs and steps.
  static base::Result<Ledger> make(LedgerConfig config);

  // Before the first plan. kCorruptData when the position cannot be of this data set.
  base::Status restore(const contract::CheckpointPosition& position);

  // Commits after which the job is done. Constant after restore().
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

  // The oldest plan that is not committed yet, or null.
  const contract::StepPlan* oldest_open() const { return open_.empty() ? nullptr : &open_.front(); }
  // All ranks committed the oldest open plan. kInternal when it is another step.
  base::Status commit(std::int64_t step);

  // Training samples by rank since the job began. May be longer than `ranks` after the job became smaller.
  const std::vector<std::int64_t>& consumed() const { return consumed_; }
  std::int64_t samples() const;  // their sum
  // By rank: what its shares of the current epoch add up to.
  const std::vector<std::int64_t>& shard_samples() const { return shard_samples_; }
  const LedgerConfig& config() const { return config_; }

 private:
  explicit Ledger(LedgerConfig config);
  std::int64_t steps_to_target() const;
  void normalise(LedgerPosition& position) const;
  void count_shards();
  bool evaluates(std::int64_t step, const LedgerPosition& after) const;

  LedgerConfig config_;
  LedgerPosition committed_;
  LedgerPosition planned_;
  std::deque<contract::StepPlan> open_;
  std::vector<std::int64_t> consumed_;
  std::vector<std::int64_t> shard_samples_;
  std::int64_t target_steps_ = 0;
  bool stop_requested_ = false;
  bool stopped_ = false;  // a plan with stop_after is issued
};

}  // namespace evenkeel::trainer
