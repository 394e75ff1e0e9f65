// Shares by speed: looks at what each rank needed for a sample and says when other shares would pay, then
// looks whether they did. Owned by Coordination, which feeds it and carries its decisions out. Pure: time is
// step numbers and seconds that are handed in; not thread safe.
//
//   watching   add() each committed step, decide() after it. Enough gain, above the noise -> a Decision.
//   measuring  the first 20 fresh steps under the new shares are compared with those before. Less than half of
//              what was predicted, and no gain worth keeping -> one Decision to take it back, and rest for a while; else the costs,
//              known better by now, may correct the shares once, and it is watching again.
//
// Where shares do not help, a rank that is much slower is left out in the same way: dropped() when that is done,
// measured, and brought back where it does not pay.
//
// A rank's cost is the median of its own work per sample over the last blocks: a block is a step, or as many
// short steps as add up to something that a scheduler or a CPU quota does not rule. Few blocks are enough
// where the gain stands far above the noise (5 standard errors of the median), 20 where it does not.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "contract/report.h"
#include "trainer/coordinator/shares.h"
#include "trainer/coordinator/waterfall.h"

namespace evenkeel::trainer {

enum class BalanceMode { kOff, kObserve, kRebalance };

struct BalancerConfig {
  BalanceMode mode = BalanceMode::kRebalance;
  std::int64_t global_batch = 1;
  int min_ranks = 0;  // of spec.workers.minReplicas; 0: a rank may not be dropped, which is advice at most then
  // Ranks under a CPU quota run at full speed and stand still by turns (periods of 100 ms).
  bool cpu_quotas = false;
  // Granule, floor and caps that shares keep to. set_limits() when they change.
  ShareLimits limits;

  // Starting values, to be moved together with the simulation in balancer_simulation_test.cpp.
  int warmup_steps = 3;               // of the attempt: buffers are made, caches are cold
  int window = 20;                    // blocks: the longest look back, and the fresh ones after a change
  int shortest = 5;                   // blocks: the shortest look back
  int confirmations = 5;              // blocks in a row that must say the same
  double min_gain = 0.05;             // of the step's time
  double noise_factor = 5 * 1.25;     // standard errors of a median, times sd of the median over sd of a mean
  double throttled_above = 0.3;       // of the periods of its quota: the quota is what a rank's speed is
  double equal_within = 3;            // standard errors: closer ranks count as equal
  double block_seconds = 0.01;        // shortest block
  double quota_block_seconds = 0.2;   // the same under CPU quotas: two periods, or what is stopped is a matter of luck
  double worst_share_at_least = 0.5;  // M_W: below, work varies, and two windows must agree
  double drop_above_slowness = 4;     // times the median
  double drop_above_imbalance = 0.10;  // with the best shares that limits allow
  double give_back_below = 0.5;        // measured gain over predicted gain
  double keep_gain = 0.10;             // is kept, however much more was predicted
  double refine_gain = 0.02;           // enough for a second look, when the new shares have been measured
  double refine_noise_factor = 1.25;
  int rest_steps = 100;  // after a change was taken back; doubles each time
};

enum class BalanceAction { kShares, kTakeBack, kDropRank, kBringBack };

struct BalanceDecision {
  BalanceAction action = BalanceAction::kShares;
  // kShares, kTakeBack: what the ledger divides by from the next plan on. Empty: evenly. A rank that takes
  // part and is not known counts as the mean of the others.
  std::vector<std::optional<double>> seconds_per_sample;
  int rank = -1;              // kDropRank, kBringBack
  double predicted_gain = 0;  // in samples/s
  double step_seconds = 0;    // kDropRank: of a step as they are now
  std::string reason;         // one sentence, for log and event
};

struct BalanceState {
  std::int64_t rebalances = 0;             // times that shares were changed, taking back included
  std::optional<bool> balanced;            // absent: not known yet
  std::string reason;                      // why it is not balanced
  std::optional<double> loss_left;         // with the best shares that limits allow, against any fractions
  std::vector<contract::Remedy> remedies;  // newest first: what was done, or what Observe would do
};

class Balancer {
 public:
  explicit Balancer(BalancerConfig config) : config_(std::move(config)) {}

  // A committed step; `special`: it or the one before it evaluated or saved, and is left out.
  void add(const StepWork& step, bool special);
  // What to do now, if anything; to be asked after every add(). `next_step` is the first step that has no
  // plan yet: from it on the decision will be in force. A decision is returned once and counts as carried
  // out, but for kDropRank: that is the caller's to do or leave (dropped()), and is said again only when the rank
  // has become another one.
  std::optional<BalanceDecision> decide(std::int64_t next_step);
  BalanceState state() const;

  // A new process at this rank: what was learned of it is void, of the others it stays.
  void reset_rank(int rank);
  // Other ranks take part, or the batch is another: a measurement under way is given up. Costs stay.
  void regrouped(std::int64_t global_batch);
  // The rank of a kDropRank is left out from this step on; after regrouped() of that group.
  void dropped(const BalanceDecision& decision, std::int64_t from_step);
  // Whether what was done last is still being measured: another change now would blur it.
  bool measuring() const { return change_ || drop_; }
  // What shares are divided by now; as in BalanceDecision.
  const std::vector<std::optional<double>>& in_force() const { return in_force_; }
  // What so many samples would take the rank by what its CPU quota allows, where it was stopped by that with more of
  // them. Absent: it was not.
  std::optional<double> quota_seconds(std::size_t rank, double samples) const;
  void set_limits(ShareLimits limits) { config_.limits = std::move(limits); }
  const ShareLimits& limits() const { return config_.limits; }

 private:
  // Sums over the steps of one block; by rank.
  struct Block {
    double step_seconds = 0;
    std::int64_t first_step = 0, last_step = 0, steps = 0;
    std::vector<RankWork> ranks;
  };
  // What the last n blocks say. Vectors by rank.
  struct View {
    std::size_t first = 0;  // block
    int blocks = 0;
    std::vector<std::size_t> present;
    std::vector<std::optional<double>> costs;  // seconds per sample
    std::vector<double> samples;               // of a step, as they are
    double work_per_sample = 0;                // 0: not counted, or own work does not follow it
    double rest_seconds = 0;                   // of a step, beside the slowest rank
    double step_seconds = 0;
    double noise = 0;  // sd of a block's cost, as a share of it
    std::size_t slowest = 0;
    double slowness = 1;  // of the slowest rank, against the median
    std::vector<bool> held;  // by rank: its cost is what it was when its CPU quota stopped it
  };
  // A rank when its CPU quota stopped it. With fewer samples it is stopped no more and looks as fast as the others;
  // with as many again it would be stopped again.
  struct Stopped {
    double cost = 0, samples = 0;
  };
  struct Gain {
    double own = 0, step = 0;  // of the slowest rank's own work, and of the step
  };
  struct Change {
    std::vector<std::optional<double>> before;
    double predicted_gain = 0, step_seconds_before = 0;
    std::int64_t from_step = 0;
    std::size_t remedy = 0;  // in remedies_
  };
  struct Drop {
    int rank = -1;
    double predicted_gain = 0, step_seconds_before = 0;
    std::int64_t from_step = 0;
  };

  std::optional<double> cost_in(const Block& block, std::size_t rank, double work_per_sample) const;
  std::optional<View> view(int blocks) const;
  double noise_of(std::size_t rank, double work_per_sample) const;
  double measure_noise(std::size_t rank, double work_per_sample) const;
  void forget_noise() { noise_ = {}; }
  bool work_explains(const View& view) const;
  void level_out(View& view) const;
  void hold_the_stopped(View& view) const;
  void remember_the_stopped(const View& view);
  double cost_of(const Block& block, std::size_t rank, const View& view) const;
  double step_with(const Block& block, const View& view, const std::vector<double>& samples) const;
  Gain gain_of(const View& view) const;
  std::vector<double> best_samples(const View& view, const ShareLimits& limits) const;
  bool enough(const View& view, const Gain& gain) const;
  bool work_varies(const View& view) const;
  std::optional<View> worth_acting();
  bool agreed(const View& view);
  BalanceDecision change_shares(const View& view, std::int64_t next_step);
  std::optional<BalanceDecision> refine();
  // Is what was done kept?
  bool pays(double measured_gain, double predicted_gain) const;
  std::optional<BalanceDecision> judge_change(std::int64_t next_step);
  std::optional<BalanceDecision> drop_a_rank(const View& view);
  std::optional<BalanceDecision> judge_drop();
  std::optional<double> fresh_step_seconds(std::int64_t from_step) const;
  void forget_before(std::int64_t step);
  void judge_limits(const View& view);
  void remember(contract::Remedy remedy);
  double block_seconds() const {
    return config_.cpu_quotas ? config_.quota_block_seconds : config_.block_seconds;
  }

  BalancerConfig config_;
  std::deque<Block> blocks_;  // finished ones, oldest first
  std::optional<Block> open_;
  // By rank, as far as it was asked for; of samples and of work units.
  mutable std::array<std::vector<std::optional<double>>, 2> noise_;
  bool news_ = false;  // a block was finished since the last decide()
  std::int64_t seen_ = 0, newest_step_ = 0;
  std::vector<std::optional<double>> in_force_;
  std::vector<std::optional<Stopped>> stopped_;  // by rank
  std::optional<Change> change_;  // being measured
  std::optional<Drop> drop_;      // being measured; its remedy is the newest
  std::int64_t rest_until_step_ = 0, rest_steps_ = 0;
  // Blocks in a row that say that this rank's share should change.
  int agreeing_ = 0;
  std::size_t agreed_rank_ = 0;
  std::optional<double> pending_gain_;
  // The same of one rank that may be dropped.
  int drop_agreeing_ = 0;
  std::size_t drop_rank_ = 0;
  std::optional<std::size_t> drop_advised_;
  std::int64_t rebalances_ = 0;
  std::vector<contract::Remedy> remedies_;  // oldest first
  std::optional<bool> balanced_;
  std::string reason_;
  std::optional<double> loss_left_;
};

}  // namespace evenkeel::trainer
