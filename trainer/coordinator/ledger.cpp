#include "trainer/coordinator/ledger.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>

#include "contract/file_layout.h"
#include "trainer/coordinator/shares.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace

base::Result<Ledger> Ledger::make(LedgerConfig config) {
  const auto invalid = [](std::string message) {
    return Error{ErrorCode::kInvalidInput, std::move(message)};
  };
  if (config.train_samples < 1)
    return invalid("the training split has no samples: check dataset.path and dataset.split");
  if (config.ranks < 1)
    return invalid("the job has " + std::to_string(config.ranks) + " ranks, at least 1 is needed");
  if (config.global_batch < 1) {
    return invalid("the global batch is " + std::to_string(config.global_batch) +
                   ": set training.batchSize to at least 1");
  }
  if (config.granule < 1)
    return invalid("a granule of " + std::to_string(config.granule) + " samples cannot be");
  if (config.epochs.has_value() == config.steps.has_value()) {
    return invalid("exactly one of training.epochs and training.steps is needed");
  }
  if (config.passes < 1) return invalid("an epoch of " + std::to_string(config.passes) + " passes cannot be");
  if (config.dealing == Dealing::kFile &&
      std::accumulate(config.file_samples.begin(), config.file_samples.end(), std::int64_t{0}) !=
          config.train_samples)
    return invalid("the files of the training split do not hold its " + std::to_string(config.train_samples) +
                   " samples");
  return Ledger(std::move(config));
}

Ledger::Ledger(LedgerConfig config)
    : config_(std::move(config)),
      consumed_(static_cast<std::size_t>(config_.ranks), 0),
      group_(static_cast<std::size_t>(config_.ranks)),
      rate_from_batch_(config_.global_batch) {
  std::iota(group_.begin(), group_.end(), 0);
  target_steps_ = steps_to_target();
  count_shards();
}

base::Status Ledger::restore(const contract::CheckpointPosition& position) {
  const auto corrupt = [](std::string what) {
    return Error{ErrorCode::kCorruptData,
                 "the checkpoint's ledger does not fit this job: " + std::move(what)};
  };
  if (position.step < 0 || position.epoch < 0) return corrupt("step or epoch is negative");
  EVENKEEL_TRY(restore_ranges(position));
  if (position.cursor < 0 || position.cursor > epoch_samples(position.epoch)) {
    return corrupt("cursor " + std::to_string(position.cursor) + " is outside the " +
                   std::to_string(config_.train_samples) + " training samples; was the data set replaced?");
  }
  if (std::any_of(position.consumed.begin(), position.consumed.end(), [](auto n) { return n < 0; })) {
    return corrupt("a rank's count of consumed samples is negative");
  }
  poison_.clear();
  mark_poison(position.poison);
  committed_ = LedgerPosition{position.step, position.epoch, position.cursor};
  normalise(committed_);
  planned_ = committed_;
  // A batch that was changed, by a resize or an edit while suspended: the rate goes on from what it was for.
  if (position.rate_batch > 0) {
    rate_from_batch_ = std::llround(position.rate_batch);
    rate_from_step_ = committed_.step;
  }
  consumed_ = position.consumed;
  if (consumed_.size() < static_cast<std::size_t>(config_.ranks))
    consumed_.resize(static_cast<std::size_t>(config_.ranks), 0);
  target_steps_ = steps_to_target();
  count_shards();
  return {};
}

// The ranges must be what is left of the epoch, each position once. Who was there before is whoever has done or owns
// something: anybody else who comes is new.
base::Status Ledger::restore_ranges(const contract::CheckpointPosition& position) {
  const auto corrupt = [](std::string what) {
    return Error{ErrorCode::kCorruptData,
                 "the checkpoint's ledger does not fit this job: " + std::move(what)};
  };
  restored_epoch_ = -1;
  before_.reset();
  owned_ = planned_owned_ = LedgerRanges(position.owned);
  tell_all_ = true;
  const std::int64_t left = owned_.samples(), total = position.cursor + left;
  if (config_.dealing == Dealing::kRecord)
    return left == 0 ? base::Status() : corrupt("its ranks owned parts of the order: dataset.sharding was another");
  if (left == 0 && position.cursor > 0 && position.cursor != epoch_samples(position.epoch))
    return corrupt("it does not say which samples are committed: dataset.sharding was another");
  if (left == 0) return {};
  const bool whole = config_.dealing == Dealing::kFile ? total == config_.train_samples
                                                       : total % config_.train_samples == 0;
  std::vector<contract::Piece> pieces = position.owned;
  std::sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  bool apart = pieces.front().begin >= 0 && pieces.back().end <= total;
  for (std::size_t i = 1; i < pieces.size(); ++i) apart = apart && pieces[i].begin >= pieces[i - 1].end;
  if (!whole || !apart)
    return corrupt(std::to_string(position.cursor) + " committed and " + std::to_string(left) +
                   " other samples are not the " + std::to_string(config_.train_samples) +
                   " of the training split; was the data set replaced?");
  restored_epoch_ = position.epoch;
  restored_epoch_samples_ = total;
  std::set<int> known;
  for (const contract::Piece& piece : position.owned) known.insert(piece.rank);
  for (std::size_t rank = 0; rank < position.consumed.size(); ++rank) {
    if (position.consumed[rank] > 0) known.insert(static_cast<int>(rank));
  }
  before_.emplace(known.begin(), known.end());
  return {};
}

std::int64_t Ledger::epoch_samples(std::int64_t epoch) const {
  if (epoch == restored_epoch_) return restored_epoch_samples_;
  return config_.train_samples * (config_.dealing == Dealing::kPasses ? config_.passes : 1);
}

void Ledger::mark_poison(const std::vector<std::int64_t>& ids) {
  for (const std::int64_t id : ids) {
    if (id >= 0 && id < config_.train_samples) poison_.insert(id);
  }
}

// A whole epoch. Files go to whoever would be done with them first; a pass is as long as any other.
LedgerRanges Ledger::deal(std::int64_t epoch) const {
  std::vector<LedgerRanges::Span> spans;
  LedgerRanges ranges;
  if (config_.dealing == Dealing::kPasses) {
    for (std::int64_t pass = 0; pass < config_.passes; ++pass)
      spans.push_back({pass * config_.train_samples, (pass + 1) * config_.train_samples});
    ranges.deal(std::move(spans), group_, {}, true);
  } else if (config_.dealing == Dealing::kFile) {
    const contract::FileLayout layout = contract::file_layout(
        config_.file_samples, config_.shuffle, config_.shuffle_seed, static_cast<std::uint64_t>(epoch));
    for (std::size_t i = 0; i + 1 < layout.starts.size(); ++i)
      spans.push_back({layout.starts[i], layout.starts[i + 1]});
    ranges.deal(std::move(spans), group_, costs_of_the_group(), true);
  }
  return ranges;
}

// A full epoch is the start of the next one.
void Ledger::normalise(LedgerPosition& position) const {
  if (position.cursor < epoch_samples(position.epoch)) return;
  position.cursor = 0;
  ++position.epoch;
}

// Counted from where the job stands, so that a batch size that was changed while the job was suspended is
// respected.
std::int64_t Ledger::steps_to_target() const {
  if (config_.steps) return std::max(*config_.steps, committed_.step);
  const std::int64_t epochs_left = *config_.epochs - committed_.epoch;
  if (epochs_left <= 0) return committed_.step;
  return committed_.step +
         ceil_div(epoch_samples(committed_.epoch) - committed_.cursor, config_.global_batch) +
         (epochs_left - 1) * ceil_div(epoch_samples(committed_.epoch + 1), config_.global_batch);
}

bool Ledger::evaluates(std::int64_t step, const LedgerPosition& after) const {
  if (config_.eval_samples < 1) return false;
  if (step == target_steps_) return true;
  return after.cursor == 0 && config_.evaluate_every > 0 && after.epoch % config_.evaluate_every == 0;
}

std::optional<contract::StepPlan> Ledger::plan_next(const contract::Fence& fence) {
  if (all_issued()) return std::nullopt;
  const std::int64_t size =
      std::min(config_.global_batch, epoch_samples(planned_.epoch) - planned_.cursor);
  contract::StepPlan plan;
  plan.fence = fence;
  plan.step = planned_.step + 1;
  plan.epoch = planned_.epoch;
  const std::vector<std::int64_t> by_rank = shares(size, planned_.step);
  plan.cuts = cuts_of(planned_.cursor, by_rank);
  if (config_.dealing != Dealing::kRecord) {
    if (planned_.cursor == 0) planned_owned_ = deal(planned_.epoch);
    plan.pieces = planned_owned_.take(by_rank, std::exchange(tell_all_, false) || planned_.cursor == 0);
  }
  plan.global_batch = config_.global_batch;
  plan.rate_batch = rate_batch(plan.step);
  planned_ = LedgerPosition{plan.step, plan.epoch, plan.cuts.back()};
  normalise(planned_);
  const bool last = plan.step == target_steps_;
  plan.evaluate_after = evaluates(plan.step, planned_);
  plan.checkpoint_after =
      config_.checkpoints &&
      (last || (config_.checkpoint_every_steps > 0 && plan.step % config_.checkpoint_every_steps == 0));
  if (stop_requested_ && !last) {
    plan.stop_after = stopped_ = true;
    plan.checkpoint_after = plan.checkpoint_after || (config_.checkpoints && config_.checkpoint_on_stop);
  }
  open_.push_back(plan);
  open_owned_.push_back(planned_owned_);
  return plan;
}

base::Status Ledger::commit(std::int64_t step) {
  if (open_.empty() || open_.front().step != step) {
    return Error{ErrorCode::kInternal, "step " + std::to_string(step) + " was committed out of order"};
  }
  const contract::StepPlan& plan = open_.front();
  consumed_.resize(std::max(consumed_.size(), plan.cuts.size() - 1));
  for (std::size_t r = 0; r + 1 < plan.cuts.size(); ++r) consumed_[r] += plan.cuts[r + 1] - plan.cuts[r];
  const std::int64_t epoch_before = committed_.epoch;
  committed_ = LedgerPosition{plan.step, plan.epoch, plan.cuts.back()};
  normalise(committed_);
  open_.pop_front();
  owned_ = std::move(open_owned_.front());
  open_owned_.pop_front();
  if (committed_.epoch != epoch_before) count_shards();
  return {};
}

std::int64_t Ledger::samples() const {
  return std::accumulate(consumed_.begin(), consumed_.end(), std::int64_t{0});
}

void Ledger::regroup(std::vector<int> ranks) {
  const std::vector<int> before = before_ ? *std::exchange(before_, std::nullopt) : group_;
  std::vector<int> newcomers;
  std::set_difference(ranks.begin(), ranks.end(), before.begin(), before.end(), std::back_inserter(newcomers));
  group_ = std::move(ranks);
  open_.clear();
  open_owned_.clear();
  planned_ = committed_;
  owned_.regroup(group_, newcomers,
                 config_.dealing == Dealing::kFile ? costs_of_the_group() : LedgerRanges::Costs());
  planned_owned_ = owned_;
  tell_all_ = true;
  stopped_ = false;
  count_shards();
}

void Ledger::set_global_batch(std::int64_t samples) {
  rate_from_batch_ = std::llround(rate_batch(committed_.step));
  rate_from_step_ = committed_.step;
  config_.global_batch = samples;
  target_steps_ = steps_to_target();
  count_shards();
}

// Straight from the batch that the rate was for to the batch of now.
double Ledger::rate_batch(std::int64_t step) const {
  const double done = std::min(1.0, static_cast<double>(step - rate_from_step_) / kRateRampSteps);
  const auto from = static_cast<double>(rate_from_batch_), to = static_cast<double>(config_.global_batch);
  return from + (to - from) * done;
}

// A rank that is not in the group has an empty share.
std::vector<std::int64_t> Ledger::shares(std::int64_t samples, std::int64_t step) const {
  const std::vector<std::optional<double>> costs = costs_of_the_group();
  if (costs.empty()) return even_shares(samples, step);
  return min_max_shares(samples, costs, division_.limits).shares;
}

std::vector<std::int64_t> Ledger::even_shares(std::int64_t samples, std::int64_t step) const {
  const std::vector<std::int64_t> by_position =
      balanced_shares(samples, static_cast<int>(group_.size()), step, config_.granule);
  std::vector<std::int64_t> by_rank(static_cast<std::size_t>(group_.back()) + 1, 0);
  for (std::size_t i = 0; i < group_.size(); ++i) by_rank[static_cast<std::size_t>(group_[i])] = by_position[i];
  return by_rank;
}

// By rank; empty where nothing is known of anybody who is there.
std::vector<std::optional<double>> Ledger::costs_of_the_group() const {
  const auto known = [&](int rank) -> std::optional<double> {
    const auto at = static_cast<std::size_t>(rank);
    return at < division_.seconds_per_sample.size() ? division_.seconds_per_sample[at] : std::nullopt;
  };
  double sum = 0, count = 0;
  for (const int rank : group_) {
    sum += known(rank).value_or(0);
    count += known(rank).has_value() ? 1 : 0;
  }
  if (count == 0) return {};
  std::vector<std::optional<double>> costs(static_cast<std::size_t>(group_.back()) + 1);
  for (const int rank : group_) costs[static_cast<std::size_t>(rank)] = known(rank).value_or(sum / count);
  return costs;
}

// Walks the steps of the epoch that the committed position is in. Without costs, shares depend on the step's
// number alone.
void Ledger::count_shards() {
  shard_samples_.assign(std::max(consumed_.size(), static_cast<std::size_t>(group_.back()) + 1), 0);
  const std::int64_t steps_before =
      committed_.cursor / config_.global_batch;  // exact unless the batch was changed
  std::int64_t step = std::max<std::int64_t>(0, committed_.step - steps_before);
  const std::int64_t samples = epoch_samples(committed_.epoch);
  for (std::int64_t at = 0; at < samples; at += config_.global_batch, ++step) {
    const auto by_rank = shares(std::min(config_.global_batch, samples - at), step);
    for (std::size_t r = 0; r < by_rank.size(); ++r) shard_samples_[r] += by_rank[r];
  }
}

}  // namespace evenkeel::trainer
