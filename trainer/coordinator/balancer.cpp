#include "trainer/coordinator/balancer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/coordinator/imbalance.h"
#include "trainer/coordinator/words.h"

namespace evenkeel::trainer {
namespace {

using Costs = std::vector<std::optional<double>>;

constexpr std::size_t kRemediesKept = 8;
constexpr double kDeviationOfMedian = 1.4826;  // standard deviation over median absolute deviation, if normal

// The middle of the values, which are left in another order: this runs for every rank after every step.
double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 != 0) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

bool takes_part(const std::vector<RankWork>& ranks, std::size_t rank) {
  return rank < ranks.size() && ranks[rank].present;
}

double largest(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

}  // namespace

void Balancer::add(const StepWork& step, bool special) {
  newest_step_ = std::max(newest_step_, step.step);
  if (++seen_ <= config_.warmup_steps || special || step.step_seconds <= 0) return;
  StepWork last;
  if (open_) last.ranks = open_->ranks;
  if (open_ && present_ranks(last) != present_ranks(step)) open_.reset();
  if (!open_) {
    open_.emplace();
    open_->first_step = step.step;
    for (const RankWork& rank : step.ranks) {
      open_->ranks.emplace_back();
      open_->ranks.back().present = rank.present;
    }
  }
  for (std::size_t r = 0; r < step.ranks.size(); ++r) {
    RankWork& sum = open_->ranks[r];
    sum.samples += step.ranks[r].samples;
    sum.compute_seconds += step.ranks[r].compute_seconds;
    sum.input_seconds += step.ranks[r].input_seconds;
    sum.work += step.ranks[r].work;
    sum.throttled_share = std::max(sum.throttled_share, step.ranks[r].throttled_share);
  }
  open_->step_seconds += step.step_seconds;
  ++open_->steps;
  if (open_->step_seconds < block_seconds()) return;
  blocks_.push_back(std::move(*open_));
  open_.reset();
  news_ = true;
  forget_noise();
  while (blocks_.size() > static_cast<std::size_t>(config_.window)) blocks_.pop_front();
}

void Balancer::reset_rank(int rank) {
  const auto at = static_cast<std::size_t>(rank);
  if (at < in_force_.size()) in_force_[at].reset();
  if (at < stopped_.size()) stopped_[at].reset();
  open_.reset();
  forget_noise();
  for (Block& block : blocks_) {
    if (at < block.ranks.size()) block.ranks[at] = away();
  }
}

void Balancer::regrouped(std::int64_t global_batch) {
  config_.global_batch = global_batch;
  change_.reset();
  drop_.reset();
  open_.reset();
  agreeing_ = drop_agreeing_ = 0;
}

void Balancer::dropped(const BalanceDecision& decision, std::int64_t from_step) {
  drop_ = Drop{decision.rank, decision.predicted_gain, decision.step_seconds, from_step};
  remember({"go on without rank " + std::to_string(decision.rank), decision.predicted_gain, std::nullopt,
            contract::RemedyState::kApplied, std::nullopt});
}

// Seconds of own work for a sample; where work is counted, for a sample of mean size.
std::optional<double> Balancer::cost_in(const Block& block, std::size_t rank, double work_per_sample) const {
  if (!takes_part(block.ranks, rank)) return std::nullopt;
  const RankWork& work = block.ranks[rank];
  if (work.samples <= 0 || work.own_seconds() <= 0) return std::nullopt;
  if (work_per_sample > 0 && work.work > 0) return work.own_seconds() / work.work * work_per_sample;
  return work.own_seconds() / work.samples;
}

// From one block to the next, so that a rank that has just become slow is not a noisy one. A share of the
// cost, so that all looks back have the same, and it is worked out once for each new block.
double Balancer::noise_of(std::size_t rank, double work_per_sample) const {
  auto& known = noise_[work_per_sample > 0 ? 1 : 0];
  if (known.size() <= rank) known.resize(rank + 1);
  if (!known[rank]) known[rank] = measure_noise(rank, work_per_sample);
  return *known[rank];
}

double Balancer::measure_noise(std::size_t rank, double work_per_sample) const {
  std::vector<double> costs, jumps;
  for (const Block& block : blocks_) {
    const auto cost = cost_in(block, rank, work_per_sample);
    if (!cost) continue;
    if (!costs.empty()) jumps.push_back(std::abs(*cost - costs.back()));
    costs.push_back(*cost);
  }
  if (jumps.empty()) return 0;
  return kDeviationOfMedian * median(jumps) / std::sqrt(2.0) / median(costs);
}

// Absent: not enough blocks, or a rank of the group is not known yet.
std::optional<Balancer::View> Balancer::view(int blocks) const {
  if (static_cast<int>(blocks_.size()) < blocks) return std::nullopt;
  View v;
  v.first = blocks_.size() - static_cast<std::size_t>(blocks);
  v.blocks = blocks;
  const std::size_t ranks = blocks_.back().ranks.size();
  double work = 0, samples = 0;
  bool counted = true;
  for (std::size_t r = 0; r < ranks; ++r) {
    if (blocks_.back().ranks[r].present) v.present.push_back(r);
  }
  std::vector<double> rest, step;
  for (std::size_t b = v.first; b < blocks_.size(); ++b) {
    const Block& block = blocks_[b];
    double slowest = 0;
    for (const std::size_t r : v.present) {
      if (!takes_part(block.ranks, r)) continue;
      slowest = std::max(slowest, block.ranks[r].own_seconds());
      work += block.ranks[r].work;
      samples += block.ranks[r].samples;
      counted = counted && (block.ranks[r].work > 0 || block.ranks[r].samples <= 0);
    }
    const double steps = static_cast<double>(block.steps);
    rest.push_back(std::max(0.0, block.step_seconds - slowest) / steps);
    step.push_back(block.step_seconds / steps);
  }
  v.rest_seconds = median(rest);
  v.step_seconds = median(step);
  v.work_per_sample = counted && samples > 0 && work_explains(v) ? work / samples : 0;
  v.costs.resize(ranks);
  v.samples.resize(ranks, 0);
  v.held.resize(ranks, false);
  std::vector<double> known, noises;
  const std::size_t enough_blocks = static_cast<std::size_t>(std::min(blocks, config_.shortest));
  for (const std::size_t r : v.present) {
    std::vector<double> costs, shares;
    for (std::size_t b = v.first; b < blocks_.size(); ++b) {
      if (!takes_part(blocks_[b].ranks, r)) continue;
      shares.push_back(blocks_[b].ranks[r].samples / static_cast<double>(blocks_[b].steps));
      if (const auto cost = cost_in(blocks_[b], r, v.work_per_sample)) costs.push_back(*cost);
    }
    if (costs.size() >= enough_blocks) {
      v.costs[r] = median(costs);
    } else if (r < in_force_.size() && in_force_[r]) {
      v.costs[r] = in_force_[r];  // it had no samples lately
    } else {
      return std::nullopt;
    }
    v.samples[r] = shares.empty() ? 0 : median(shares);
    noises.push_back(noise_of(r, v.work_per_sample));
  }
  if (v.present.size() < 2) return std::nullopt;
  hold_the_stopped(v);
  for (const std::size_t r : v.present) {
    if (*v.costs[r] > v.costs[v.slowest].value_or(0)) v.slowest = r;
  }
  v.noise = std::max(mean(noises), noise_of(v.slowest, v.work_per_sample));
  level_out(v);
  for (const std::size_t r : v.present) known.push_back(*v.costs[r]);
  if (lower_median(known) <= 0) return std::nullopt;
  v.slowness = *v.costs[v.slowest] / lower_median(known);
  return v;
}

// Records that differ in size count by it where own work follows it; where it does not, as when reading is hidden
// behind computing, sizes would only be noise.
bool Balancer::work_explains(const View& v) const {
  constexpr double kExplains = 0.7;  // correlation
  std::vector<double> work, own;
  for (std::size_t b = v.first; b < blocks_.size(); ++b) {
    for (const std::size_t r : v.present) {
      if (!takes_part(blocks_[b].ranks, r) || blocks_[b].ranks[r].samples <= 0) continue;
      const RankWork& rank = blocks_[b].ranks[r];
      work.push_back(rank.work / rank.samples);
      own.push_back(rank.own_seconds() / rank.samples);
    }
  }
  return correlation(work, own).value_or(0) > kExplains;
}

// Whoever is not stopped in a step of this length needs no longer for its samples.
void Balancer::hold_the_stopped(View& v) const {
  for (const std::size_t r : v.present) {
    if (r >= stopped_.size() || !stopped_[r] || v.samples[r] <= 0) continue;
    if (v.samples[r] >= stopped_[r]->samples) continue;
    const double cost = std::min(stopped_[r]->cost, v.step_seconds / v.samples[r]);
    v.held[r] = cost > *v.costs[r];
    if (v.held[r]) v.costs[r] = cost;
  }
}

void Balancer::remember_the_stopped(const View& v) {
  if (!config_.cpu_quotas) return;
  stopped_.resize(std::max(stopped_.size(), v.costs.size()));
  for (const std::size_t r : v.present) {
    if (v.held[r] || blocks_.back().ranks[r].throttled_share < config_.throttled_above) continue;
    stopped_[r] = Stopped{*v.costs[r], v.samples[r]};
  }
}

std::optional<double> Balancer::quota_seconds(std::size_t rank, double samples) const {
  if (rank >= stopped_.size() || !stopped_[rank] || samples >= stopped_[rank]->samples) return std::nullopt;
  return samples * stopped_[rank]->cost;
}

double Balancer::cost_of(const Block& block, std::size_t rank, const View& v) const {
  if (v.held[rank]) return *v.costs[rank];
  return cost_in(block, rank, v.work_per_sample).value_or(*v.costs[rank]);
}

// A short look back sees differences that are noise, and shares by noise are worse than equal ones: a rank
// that is as it was is judged by all blocks, and ranks that cannot be told from the median count as equal.
void Balancer::level_out(View& v) const {
  const auto is_noise = [&](double difference, double cost, std::size_t blocks) {
    return std::abs(difference) <=
           config_.equal_within * 1.25 * v.noise * cost / std::sqrt(static_cast<double>(blocks));
  };
  std::vector<double> known;
  for (const std::size_t r : v.present) {
    std::vector<double> all;
    for (const Block& block : blocks_) {
      if (v.held[r]) break;
      if (const auto cost = cost_in(block, r, v.work_per_sample)) all.push_back(*cost);
    }
    if (!all.empty() && is_noise(median(all) - *v.costs[r], *v.costs[r], static_cast<std::size_t>(v.blocks)))
      v.costs[r] = median(all);
    known.push_back(*v.costs[r]);
  }
  const double middle = lower_median(known);
  std::vector<double> equal;
  std::vector<std::size_t> ranks;
  for (const std::size_t r : v.present) {
    if (!is_noise(*v.costs[r] - middle, middle, blocks_.size())) continue;
    equal.push_back(*v.costs[r]);
    ranks.push_back(r);
  }
  for (const std::size_t r : ranks) v.costs[r] = mean(equal);
}

std::vector<double> Balancer::best_samples(const View& v, const ShareLimits& limits) const {
  const MinMaxShares best = min_max_shares(config_.global_batch, v.costs, limits);
  return {best.shares.begin(), best.shares.end()};
}

// The slowest rank's own work in a step of this block, had it had these samples: with the block's own noise,
// as the slowest of many equal ranks is slower than each of them.
double Balancer::step_with(const Block& block, const View& v, const std::vector<double>& samples) const {
  double slowest = 0;
  for (const std::size_t r : v.present) slowest = std::max(slowest, samples[r] * cost_of(block, r, v));
  return slowest;
}

Balancer::Gain Balancer::gain_of(const View& v) const {
  const std::vector<double> best = best_samples(v, config_.limits);
  std::vector<double> now, then;
  for (std::size_t b = v.first; b < blocks_.size(); ++b) {
    now.push_back(step_with(blocks_[b], v, v.samples));
    then.push_back(step_with(blocks_[b], v, best));
  }
  const double own_now = median(now), own_then = median(then);
  if (own_then <= 0) return {};
  return {own_now / own_then - 1, (own_now + v.rest_seconds) / (own_then + v.rest_seconds) - 1};
}

bool Balancer::enough(const View& v, const Gain& gain) const {
  const double above_noise = config_.noise_factor * v.noise / std::sqrt(static_cast<double>(v.blocks));
  return gain.step > config_.min_gain && gain.own > std::max(config_.min_gain, above_noise);
}

// Is the loss gone when the slow ranks are as the others? If not, the work varies: what one window says may
// be other in the next.
bool Balancer::work_varies(const View& v) const {
  std::vector<double> known;
  for (const std::size_t r : v.present) known.push_back(*v.costs[r]);
  const double slow = lower_median(known) * (1 + (v.slowness - 1) / 2);
  double measured = 0, average = 0, repaired = 0;
  for (std::size_t b = v.first; b < blocks_.size(); ++b) {
    std::vector<double> own;
    for (const std::size_t r : v.present) {
      own.push_back(v.samples[r] * cost_of(blocks_[b], r, v));
    }
    const double block_mean = mean(own);
    measured += largest(own);
    average += block_mean;
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (known[i] > slow) own[i] = block_mean;
    }
    repaired += largest(own);
  }
  return measured <= average || (measured - repaired) / (measured - average) < config_.worst_share_at_least;
}

// The shortest look back that stands above its noise.
std::optional<Balancer::View> Balancer::worth_acting() {
  for (const int blocks :
       {config_.shortest, config_.shortest * 8 / 5, config_.window * 3 / 5, config_.window}) {
    std::optional<View> v = view(blocks);
    if (!v) continue;
    const Gain gain = gain_of(*v);
    if (!enough(*v, gain)) continue;
    pending_gain_ = gain.step;
    return v;
  }
  pending_gain_.reset();
  return std::nullopt;
}

bool Balancer::agreed(const View& v) {
  if (agreeing_ == 0 || agreed_rank_ != v.slowest) agreeing_ = 0;
  agreed_rank_ = v.slowest;
  ++agreeing_;
  // Two windows that have nothing in common.
  const int needed = work_varies(v) ? config_.window + 1 : config_.confirmations;
  return agreeing_ >= needed;
}

// REQUIRES: no change is being measured.
void Balancer::remember(contract::Remedy remedy) {
  remedies_.push_back(std::move(remedy));
  if (remedies_.size() > kRemediesKept) remedies_.erase(remedies_.begin());
}

BalanceDecision Balancer::change_shares(const View& found, std::int64_t next_step) {
  // The median of the shortest view turned when more than half of its blocks were of the new kind.
  const int since = config_.shortest / 2 + agreeing_;
  const View v =
      since > found.blocks ? view(std::min(since, static_cast<int>(blocks_.size()))).value_or(found) : found;
  BalanceDecision decision;
  decision.action = BalanceAction::kShares;
  decision.seconds_per_sample = v.costs;
  decision.predicted_gain = *pending_gain_;
  const std::string slowest = std::to_string(v.slowest);
  decision.reason = "rank " + slowest + " needs " + two_digits(v.slowness) +
                    " times as long for a sample as the median rank: new shares, predicted gain " +
                    percent(decision.predicted_gain);
  remember({"shares by speed, for rank " + slowest, decision.predicted_gain, std::nullopt,
            contract::RemedyState::kApplied, std::nullopt});
  remember_the_stopped(v);
  change_ = Change{in_force_, decision.predicted_gain, v.step_seconds, next_step, remedies_.size() - 1};
  in_force_ = decision.seconds_per_sample;
  ++rebalances_;
  agreeing_ = 0;
  pending_gain_.reset();
  return decision;
}

// Absent: too few steps since then.
std::optional<double> Balancer::fresh_step_seconds(std::int64_t from_step) const {
  std::vector<double> fresh;
  std::int64_t steps = 0;
  for (const Block& block : blocks_) {
    if (block.first_step < from_step) continue;
    fresh.push_back(block.step_seconds / static_cast<double>(block.steps));
    steps += block.steps;
  }
  if (steps < config_.window || static_cast<int>(fresh.size()) < config_.shortest) return std::nullopt;
  return median(std::move(fresh));
}

void Balancer::forget_before(std::int64_t step) {
  while (!blocks_.empty() && blocks_.front().first_step < step) blocks_.pop_front();
  forget_noise();
}

bool Balancer::pays(double measured_gain, double predicted_gain) const {
  return measured_gain >= std::min(config_.give_back_below * predicted_gain, config_.keep_gain);
}

std::optional<BalanceDecision> Balancer::judge_change(std::int64_t next_step) {
  const std::optional<double> step_seconds = fresh_step_seconds(change_->from_step);
  if (!step_seconds) return std::nullopt;
  const Change change = *change_;
  change_.reset();
  forget_before(change.from_step);  // of other shares
  const double gain = change.step_seconds_before / *step_seconds - 1;
  contract::Remedy& remedy = remedies_[change.remedy];
  remedy.measured_gain = gain;
  if (pays(gain, change.predicted_gain)) {
    rest_steps_ = 0;
    return refine();
  }
  remedy.state = contract::RemedyState::kReverted;
  rest_steps_ = rest_steps_ == 0 ? config_.rest_steps : std::min<std::int64_t>(2 * rest_steps_, 1 << 20);
  rest_until_step_ = next_step + rest_steps_;
  in_force_ = change.before;
  ++rebalances_;
  BalanceDecision decision;
  decision.action = BalanceAction::kTakeBack;
  decision.seconds_per_sample = in_force_;
  decision.predicted_gain = change.predicted_gain;
  decision.reason = "new shares gained " + percent(gain) + " where " + percent(change.predicted_gain) +
                    " was predicted: taken back";
  return decision;
}

// Small corrections, not worth a name and not measured.
std::optional<BalanceDecision> Balancer::refine() {
  const std::optional<View> v = view(static_cast<int>(blocks_.size()));
  if (!v) return std::nullopt;
  const Gain gain = gain_of(*v);
  const double above_noise =
      config_.refine_noise_factor * v->noise / std::sqrt(static_cast<double>(v->blocks));
  if (gain.step <= config_.refine_gain || gain.own <= above_noise) return std::nullopt;
  remember_the_stopped(*v);
  in_force_ = v->costs;
  ++rebalances_;
  BalanceDecision decision;
  decision.seconds_per_sample = in_force_;
  decision.predicted_gain = gain.step;
  decision.reason = "shares corrected by more steps, predicted gain " + percent(gain.step);
  return decision;
}

// Whether what the limits allow is near what fractions of a sample would give; if not, which limit it is.
void Balancer::judge_limits(const View& v) {
  double speed = 0;
  for (const std::size_t r : v.present) speed += 1 / *v.costs[r];
  const double ideal = static_cast<double>(config_.global_batch) / speed;
  const auto loss_with = [&](const ShareLimits& limits) {
    const std::vector<double> samples = best_samples(v, limits);
    double slowest = 0;
    for (const std::size_t r : v.present) slowest = std::max(slowest, samples[r] * *v.costs[r]);
    return std::max(0.0, slowest - ideal) / (slowest + v.rest_seconds);
  };
  loss_left_ = loss_with(config_.limits);
  balanced_ = true;
  reason_.clear();
  const std::string slowest = "rank " + std::to_string(v.slowest);
  if (pending_gain_) {
    balanced_ = false;
    reason_ = slowest + " is slower than the others";
    if (config_.mode == BalanceMode::kObserve) reason_ += "; balance.mode is Observe";
    return;
  }
  if (*loss_left_ <= config_.min_gain) return;
  balanced_ = false;
  ShareLimits limits = config_.limits;
  limits.caps.clear();
  if (loss_with(limits) < *loss_left_ / 2) {
    reason_ = "the most samples that a rank may have keep " + slowest + " from giving more away";
    return;
  }
  limits.granule = 1;
  const double finer = loss_with(limits);
  if (config_.limits.granule > 1 && finer < *loss_left_ / 2) {
    reason_ = "groups of " + std::to_string(config_.limits.granule) + " samples stay together";
  } else if (config_.limits.floor > 0) {
    reason_ =
        "the least samples of a rank, " + std::to_string(config_.limits.floor) + ", are many for " + slowest;
  } else {
    reason_ = "the global batch of " + std::to_string(config_.global_batch) + " samples is small for " +
              std::to_string(v.present.size()) + " ranks of different speed";
  }
}

std::optional<BalanceDecision> Balancer::judge_drop() {
  const std::optional<double> step_seconds = fresh_step_seconds(drop_->from_step);
  if (!step_seconds) return std::nullopt;
  const Drop drop = *drop_;
  drop_.reset();
  forget_before(drop.from_step);
  const double gain = drop.step_seconds_before / *step_seconds - 1;
  contract::Remedy& remedy = remedies_.back();
  remedy.measured_gain = gain;
  if (pays(gain, drop.predicted_gain)) return std::nullopt;
  remedy.state = contract::RemedyState::kReverted;
  BalanceDecision decision;
  decision.action = BalanceAction::kBringBack;
  decision.rank = drop.rank;
  decision.predicted_gain = drop.predicted_gain;
  decision.reason = "without rank " + std::to_string(drop.rank) + " it gained " + percent(gain) + " where " +
                    percent(drop.predicted_gain) + " was predicted: it is brought back";
  return decision;
}

// Only where the best shares do not help: it must be much slower for two windows, and the others faster
// alone.
std::optional<BalanceDecision> Balancer::drop_a_rank(const View& v) {
  const std::vector<double> best = best_samples(v, config_.limits);
  std::vector<double> own;
  for (const std::size_t r : v.present) own.push_back(best[r] * *v.costs[r]);
  const bool bad =
      v.slowness > config_.drop_above_slowness || imbalance_ratio(own) > config_.drop_above_imbalance;
  if (!bad || (drop_agreeing_ > 0 && drop_rank_ != v.slowest)) drop_agreeing_ = 0;
  if (!bad) return std::nullopt;
  drop_rank_ = v.slowest;
  if (++drop_agreeing_ <= config_.window || drop_advised_ == v.slowest) return std::nullopt;
  View others = v;
  others.costs[v.slowest].reset();
  std::erase(others.present, v.slowest);
  const std::vector<double> without = best_samples(others, config_.limits);
  double slowest = 0;
  for (const std::size_t r : others.present) slowest = std::max(slowest, without[r] * *others.costs[r]);
  // The ring's share of the rest: (N-1)/N of what a rank sends.
  const double n = static_cast<double>(v.present.size());
  const double rest = v.rest_seconds * ((n - 2) / (n - 1)) / ((n - 1) / n);
  // Against the steps as they are: where its work does not follow its share, new shares have not helped.
  const double gain = v.step_seconds / (slowest + rest) - 1;
  const double above_noise = config_.noise_factor * v.noise / std::sqrt(static_cast<double>(v.blocks));
  if (gain <= std::max(config_.min_gain, above_noise)) return std::nullopt;
  drop_advised_ = v.slowest;
  const bool allowed = config_.mode == BalanceMode::kRebalance && config_.min_ranks > 0 &&
                       static_cast<int>(others.present.size()) >= config_.min_ranks;
  if (!allowed) {
    remember({"go on without rank " + std::to_string(v.slowest), gain, std::nullopt,
              contract::RemedyState::kNotAllowed, std::nullopt});
    return std::nullopt;
  }
  BalanceDecision decision;
  decision.action = BalanceAction::kDropRank;
  decision.rank = static_cast<int>(v.slowest);
  decision.predicted_gain = gain;
  decision.step_seconds = v.step_seconds;
  decision.reason = "rank " + std::to_string(v.slowest) + " needs " + two_digits(v.slowness) +
                    " times as long for a sample: the others alone are faster, predicted gain " +
                    percent(gain);
  return decision;
}

std::optional<BalanceDecision> Balancer::decide(std::int64_t next_step) {
  if (config_.mode == BalanceMode::kOff || !std::exchange(news_, false)) return std::nullopt;
  if (change_) return judge_change(next_step);
  if (drop_) return judge_drop();
  const std::optional<View> found = worth_acting();
  if (!found) agreeing_ = 0;
  const std::optional<View> long_view = found ? found : view(static_cast<int>(blocks_.size()));
  if (long_view && static_cast<int>(blocks_.size()) >= config_.shortest) judge_limits(*long_view);
  if (found) {
    const bool sure = agreed(*found);
    // Shares that were just taken back are no help against it.
    const bool tried = newest_step_ < rest_until_step_;
    if (!tried && (!sure || config_.mode != BalanceMode::kRebalance)) return std::nullopt;
    if (!tried) return change_shares(*found, next_step);
  }
  return long_view && static_cast<int>(blocks_.size()) >= config_.window ? drop_a_rank(*long_view)
                                                                         : std::nullopt;
}

BalanceState Balancer::state() const {
  BalanceState state;
  state.rebalances = rebalances_;
  state.balanced = balanced_;
  state.reason = reason_;
  state.loss_left = loss_left_;
  state.remedies.assign(remedies_.rbegin(), remedies_.rend());
  if (pending_gain_ && config_.mode == BalanceMode::kObserve) {
    state.remedies.insert(state.remedies.begin(),
                          {"shares by speed, for rank " + std::to_string(agreed_rank_), *pending_gain_,
                           std::nullopt, contract::RemedyState::kNotAllowed, std::nullopt});
  }
  return state;
}

}  // namespace evenkeel::trainer
