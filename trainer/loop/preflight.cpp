#include "trainer/loop/preflight.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/clock.h"
#include "contract/job/sample_groups.h"
#include "trainer/coordinator/imbalance.h"
#include "trainer/coordinator/shares.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

constexpr std::size_t kMostElements = std::size_t{1} << 20;  // of a bucket that is timed
constexpr std::uint32_t kPreflightBucket = 0xFFFE;           // in no plan
constexpr int kRounds = 3;  // measured, after one in which plans are compiled and caches filled
// Sums of the same numbers in another order differ by rounding alone; a rank that is left out makes a
// difference of the size of the gradient.
constexpr double kGradientTolerance = 0.02, kLossTolerance = 0.01;

double now() { return base::seconds(base::real_clock().now().time_since_epoch()); }

// One double from each rank, by position in the ring.
Result<std::vector<double>> gather(Collective& collective, double mine) {
  std::vector<double> all(static_cast<std::size_t>(collective.size()), 0);
  all[static_cast<std::size_t>(collective.rank())] = mine;
  EVENKEEL_TRY(collective.all_reduce(std::span<double>(all), kPreflightBucket));
  return all;
}

std::size_t bucket_elements(Replica& replica) {
  std::uint64_t largest = 1;
  for (const Bucket& bucket : replica.engine().plan().buckets)
    largest = std::max(largest, bucket.elements);
  return static_cast<std::size_t>(std::min<std::uint64_t>(largest, kMostElements));
}

// ---- 1 and 2

// Small enough that sums over thousands of ranks stay exact in fp32.
float known_integer(std::size_t element) { return static_cast<float>(element % 13 + 1); }

Status check_integers(Collective& collective, std::vector<float>& buffer, const Injection& injection) {
  const auto ranks = static_cast<double>(collective.size());
  for (std::size_t i = 0; i < buffer.size(); ++i)
    buffer[i] = known_integer(i) * static_cast<float>(collective.rank() % 16 + 1);
  if (injection.falsifies_integers()) ++buffer.back();
  double factor = 0;
  for (int rank = 0; rank < collective.size(); ++rank) factor += rank % 16 + 1;
  EVENKEEL_TRY(collective.all_reduce(std::span<float>(buffer), kPreflightBucket));
  for (std::size_t i = 0; i < buffer.size(); ++i) {
    const double expected = static_cast<double>(known_integer(i)) * factor;
    if (static_cast<double>(buffer[i]) == expected) continue;
    return Error{ErrorCode::kNumerical,
                 "PeerMemoryCorruption: the all-reduce of known integers over " +
                     std::to_string(static_cast<int>(ranks)) + " ranks gave " + std::to_string(buffer[i]) +
                     " for element " + std::to_string(i) + ", right is " + std::to_string(expected) +
                     "; check the network, and ACS and IOMMU where GPUs read each other's memory"};
  }
  return {};
}

// Bytes per second of an all-reduce of this buffer. The slowest rank's view is everybody's, here and below.
Result<double> bus_speed(Collective& collective, std::span<float> buffer) {
  const double n = collective.size();
  std::vector<double> reduce;
  for (int round = 0; round <= kRounds; ++round) {
    std::fill(buffer.begin(), buffer.end(), 0.0f);
    EVENKEEL_TRY(collective.barrier());
    const double begin = now();
    EVENKEEL_TRY(collective.all_reduce(buffer, kPreflightBucket));
    if (round > 0) reduce.push_back(now() - begin);
  }
  EVENKEEL_ASSIGN(const std::vector<double> seconds, gather(collective, lower_median(reduce)));
  const double slowest = *std::max_element(seconds.begin(), seconds.end());
  return slowest > 0 ? 2 * (n - 1) / n * static_cast<double>(buffer.size_bytes()) / slowest : 0;
}

Result<double> hop_time(Collective& collective) {
  std::vector<double> barrier;
  for (int round = 0; round <= kRounds; ++round) {
    const double begin = now();
    EVENKEEL_TRY(collective.barrier());
    if (round > 0) barrier.push_back(now() - begin);
  }
  EVENKEEL_ASSIGN(const std::vector<double> hops,
                  gather(collective, lower_median(barrier) / (collective.size() - 1)));
  return *std::max_element(hops.begin(), hops.end());
}

// Buckets of a quarter of the size and of four times: too small pays latency for each, too large hides nothing.
// `elements`: of all gradients together, more than which no bucket can hold.
Status measure_network(Collective& collective, std::vector<float>& buffer, std::size_t elements,
                       contract::Preflight& found) {
  constexpr double kMostSeconds = 2, kClearlyBetter = 1.1;
  constexpr std::size_t kLeastElements = 1024;
  const double n = collective.size();
  EVENKEEL_ASSIGN(found.bus_bytes_per_second, bus_speed(collective, buffer));
  EVENKEEL_ASSIGN(found.hop_seconds, hop_time(collective));
  found.best_bus_bytes_per_second = found.bus_bytes_per_second;
  found.best_bucket_bytes = static_cast<double>(buffer.size() * sizeof(float));
  const std::size_t size = buffer.size();
  for (const std::size_t other : {size / 4, std::min(size * 4, elements)}) {
    const double bytes = static_cast<double>(other * sizeof(float));
    const double expected = (kRounds + 1) * 2 * (n - 1) / n * bytes / std::max(1.0, found.bus_bytes_per_second);
    if (other < kLeastElements || other == size || other > 4 * kMostElements || expected > kMostSeconds) continue;
    buffer.resize(std::max(buffer.size(), other));
    EVENKEEL_ASSIGN(const double speed, bus_speed(collective, std::span<float>(buffer).first(other)));
    if (speed <= kClearlyBetter * found.best_bus_bytes_per_second) continue;
    found.best_bus_bytes_per_second = speed;
    found.best_bucket_bytes = bytes;
  }
  return {};
}

// ---- 3 and 4

struct Round {
  StepSums sums;
  double compute_seconds = 0, input_seconds = 0, step_seconds = 0;
};

using Range = std::pair<std::int64_t, std::int64_t>;

// Computes what was read; nothing is reduced and nothing learned.
Status compute_batch(const StepContext& context, Round& round) {
  Replica& replica = context.replica;
  GradientReduction nobody(context.collective, replica.engine().plan().buckets,
                           replica.engine().gradient_arena());
  const double start = now();
  EVENKEEL_ASSIGN(round.sums, compute_share(replica, nobody));
  round.compute_seconds = now() - start;
  return {};
}

// Reads and computes. `next` is read ahead for the next round, as training does.
Result<Round> compute(const StepContext& context, const Range& range, const Range& next) {
  Round round;
  const double start = now();
  EVENKEEL_ASSIGN(const BatchTaken taken, context.replica.read_share(0, range.first, range.second));
  round.input_seconds = now() - start;
  context.replica.expect_share(0, next.first, next.second);
  EVENKEEL_TRY(compute_batch(context, round));
  round.sums.skipped = taken.skipped;
  round.sums.ids_hash = taken.id_hash;
  round.step_seconds = now() - start;
  return round;
}

// What training would change, put back at the end.
class Untouched {
 public:
  explicit Untouched(Replica& replica)
      : replica_(replica),
        parameters_(replica.engine().parameter_arena().begin(), replica.engine().parameter_arena().end()),
        state_(replica.engine().optimizer_state().begin(), replica.engine().optimizer_state().end()),
        steps_(replica.optimizer_steps()),
        rate_batch_(replica.rate_batch()) {}
  ~Untouched() {
    std::copy(parameters_.begin(), parameters_.end(), replica_.engine().parameter_arena().begin());
    std::copy(state_.begin(), state_.end(), replica_.engine().optimizer_state().begin());
    replica_.set_optimizer_steps(steps_);
    replica_.set_rate_batch(rate_batch_);
  }
  Untouched(const Untouched&) = delete;
  Untouched& operator=(const Untouched&) = delete;

 private:
  Replica& replica_;
  const std::vector<float> parameters_, state_;
  const std::int64_t steps_;
  const double rate_batch_;
};

Status update_alone(Replica& replica, const Round& round, std::int64_t samples) {
  contract::StepPlan plan;
  plan.step = 1;
  plan.cuts = {0, samples};
  ReducedSums sums;
  sums.loss = round.sums.loss;
  sums.count = round.sums.count;
  sums.skipped = round.sums.skipped;
  sums.ranks = 1;
  EVENKEEL_TRY(replica.apply(plan, sums));
  return {};
}

// A step of one rank, and its gradient before any update.
struct Alone {
  Round mean;
  StepSums sums;
  std::vector<float> gradient;
};

Result<Alone> run_alone(const StepContext& context, std::int64_t samples, double budget_seconds) {
  Alone alone;
  const double begin = now();
  int measured = 0;
  for (int round = 0; round <= kRounds && (round < 2 || now() - begin < budget_seconds); ++round) {
    // Each round begins with the same weights: what the job will learn from them is not foreseen here.
    const Untouched untouched(context.replica);
    const double start = now();
    EVENKEEL_ASSIGN(const Round one, compute(context, {0, samples}, {0, samples}));
    const double before_update = now();
    if (round == 0) {
      const auto gradients = context.replica.engine().gradient_arena();
      alone.gradient.assign(gradients.begin(), gradients.end());
      alone.sums = one.sums;
    }
    EVENKEEL_TRY(update_alone(context.replica, one, samples));
    if (round == 0) continue;
    ++measured;
    alone.mean.compute_seconds += one.compute_seconds + (now() - before_update);
    alone.mean.input_seconds += one.input_seconds;
    alone.mean.step_seconds += now() - start;
  }
  alone.mean.compute_seconds /= measured;
  alone.mean.input_seconds /= measured;
  alone.mean.step_seconds /= measured;
  return alone;
}

// ---- 5

Status compare(const StepSums& alone, const ReducedSums& together, std::span<const float> alone_gradient,
               std::span<const float> gradient, int ranks) {
  const double ratio = alone.loss != 0 ? together.loss / alone.loss : 1;
  if (!(std::abs(ratio - 1) <= kLossTolerance)) {
    return Error{ErrorCode::kNumerical, "LossScaledByReplicas: over the same samples the loss of " +
                                            std::to_string(ranks) + " ranks is " + std::to_string(ratio) +
                                            " times that of one rank"};
  }
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double a = alone_gradient[i], b = gradient[i];
    difference += (a - b) * (a - b);
    size += a * a;
  }
  const double relative = size > 0 ? std::sqrt(difference / size) : 0;
  if (relative <= kGradientTolerance) return {};
  return Error{ErrorCode::kNumerical, "GradientDiffers: over the same samples the gradient of " +
                                          std::to_string(ranks) + " ranks differs from that of one rank by " +
                                          std::to_string(relative) + " of its length"};
}

class Preflight {
 public:
  Preflight(const StepContext& context, const PreflightOptions& options)
      : context_(context), options_(options), collective_(context.collective), begin_(now()) {}

  Result<contract::Preflight> run() {
    std::vector<float> buffer(bucket_elements(context_.replica));
    EVENKEEL_TRY(check_integers(collective_, buffer, context_.replica.injection()));
    EVENKEEL_TRY(measure_network(collective_, buffer, context_.replica.engine().gradient_arena().size(), found_));
    EVENKEEL_TRY(run_shares());
    if (worth_a_baseline()) {
      EVENKEEL_TRY(run_baseline());
    }
    EVENKEEL_ASSIGN(const std::vector<double> seconds, gather(collective_, now() - begin_));
    found_.seconds = *std::max_element(seconds.begin(), seconds.end());
    return found_;
  }

 private:
  // By position, evenly; `first`: where the step begins.
  Range share_of(std::int64_t samples, std::int64_t first = 0) const {
    const auto cuts = cuts_of(first, balanced_shares(samples, collective_.size(), 0, options_.granule));
    const auto at = static_cast<std::size_t>(collective_.rank());
    return {cuts[at], cuts[at + 1]};
  }

  // Another step in each round: what was read once may still lie in a cache.
  Range share_in_round(int round) const {
    const std::int64_t steps = std::max<std::int64_t>(1, options_.train_samples / options_.group_samples);
    return share_of(options_.group_samples, round % steps * options_.group_samples);
  }

  // Means over rounds, without the first. Rounds are counted, not timed, where the ranks exchange statistics in the
  // middle of them. `reads`: data as in training; else the samples that were read last, again and again.
  Result<Round> mean_round(bool reads) const {
    Round sum;
    int measured = 0;
    const double start = now();
    for (int round = 0;
         round <= kRounds && (round < 2 || !options_.alone || now() - start < options_.budget_seconds / 4); ++round) {
      Round one;
      if (reads) {
        EVENKEEL_ASSIGN(one, compute(context_, share_in_round(round), share_in_round(round + 1)));
      } else {
        EVENKEEL_TRY(compute_batch(context_, one));
        one.step_seconds = one.compute_seconds;
      }
      if (round == 0) continue;
      ++measured;
      sum.compute_seconds += one.compute_seconds;
      sum.input_seconds += one.input_seconds;
      sum.step_seconds += one.step_seconds;
    }
    for (double* seconds : {&sum.compute_seconds, &sum.input_seconds, &sum.step_seconds}) *seconds /= measured;
    return sum;
  }

  Status run_shares() {
    EVENKEEL_ASSIGN(const Round real, mean_round(true));
    EVENKEEL_ASSIGN(const Round synthetic, mean_round(false));
    const Range share = share_in_round(0);
    const double samples = std::max<double>(1, static_cast<double>(share.second - share.first));
    EVENKEEL_ASSIGN(per_sample_, gather(collective_, real.compute_seconds / samples));
    EVENKEEL_ASSIGN(found_.share_compute_seconds, mean_over_ranks(real.compute_seconds));
    EVENKEEL_ASSIGN(found_.share_input_seconds, mean_over_ranks(real.input_seconds));
    EVENKEEL_ASSIGN(found_.real_step_seconds, mean_over_ranks(real.step_seconds));
    EVENKEEL_ASSIGN(found_.synthetic_step_seconds, mean_over_ranks(synthetic.step_seconds));
    return {};
  }

  Result<double> mean_over_ranks(double mine) const {
    EVENKEEL_ASSIGN(const std::vector<double> all, gather(collective_, mine));
    return mean(all);
  }

  // The same decision on all ranks: made of what all of them have gathered.
  bool worth_a_baseline() const {
    const double expected = lower_median(per_sample_) * static_cast<double>(options_.reference_samples) * 2;
    return options_.alone && expected <= options_.budget_seconds;
  }

  Status run_baseline() {
    const double median = lower_median(per_sample_);
    const auto chosen = std::find(per_sample_.begin(), per_sample_.end(), median) - per_sample_.begin();
    const bool mine = chosen == collective_.rank();
    Alone alone;
    if (mine) {
      EVENKEEL_ASSIGN(alone, run_alone(context_, options_.reference_samples, options_.budget_seconds / 2));
    }
    // Everybody else waits here.
    std::vector<double> numbers{alone.mean.compute_seconds, alone.mean.input_seconds, alone.mean.step_seconds};
    EVENKEEL_TRY(collective_.all_reduce(std::span<double>(numbers), kPreflightBucket));
    found_.samples = static_cast<double>(options_.reference_samples);
    found_.compute_seconds = numbers[0];
    found_.input_seconds = numbers[1];
    found_.step_seconds = numbers[2];
    return options_.comparable ? compare_with(alone, mine) : Status();
  }

  Status compare_with(const Alone& alone, bool mine) {
    Engine& engine = context_.replica.engine();
    const auto [begin, end] = share_of(options_.reference_samples);
    GradientReduction reduction(collective_, engine.plan().buckets, engine.gradient_arena());
    EVENKEEL_ASSIGN(const BatchTaken taken, context_.replica.read_share(0, begin, end));
    EVENKEEL_ASSIGN(StepSums own, compute_share(context_.replica, reduction));
    own.skipped = taken.skipped;
    own.ids_hash = taken.id_hash;
    context_.replica.inject_into_gradients();
    if (context_.replica.injection().falsifies_loss()) own.loss *= 2;
    EVENKEEL_ASSIGN(const ReducedSums sums, reduction.reduce(0, own));
    if (!mine) return {};
    return compare(alone.sums, sums, alone.gradient, engine.gradient_arena(), collective_.size());
  }

  const StepContext& context_;
  const PreflightOptions options_;
  Collective& collective_;
  const double begin_;
  std::vector<double> per_sample_;  // compute seconds, by position
  contract::Preflight found_;
};

}  // namespace

PreflightOptions preflight_options(const contract::TrainingJobSpec& spec, std::int64_t train_samples) {
  using contract::BatchNormStatistics;
  const contract::TrainingSpec& training = spec.training;
  const bool batch_norm = contract::has_batch_norm(spec.model);
  const bool sync = batch_norm && training.batch_norm.statistics == BatchNormStatistics::kSync;
  PreflightOptions options;
  options.train_samples = train_samples;
  options.group_samples = std::min(spec.global_batch(), train_samples);
  // With `global` given, one rank alone would do all of it; with `perReplica`, its own share.
  options.reference_samples =
      std::min(training.batch_per_replica.value_or(spec.global_batch()), train_samples);
  options.granule = contract::share_granule(spec);
  options.comparable = !training.reproducible &&  // its sums are compared to the bit anyway
                       training.loss_normalization != contract::LossNormalization::kPerReplicaMean &&
                       !(batch_norm && training.batch_norm.statistics == BatchNormStatistics::kLocal);
  options.alone = !sync;
  return options;
}

Result<contract::Preflight> run_preflight(const StepContext& context, const PreflightOptions& options) {
  return Preflight(context, options).run();
}

}  // namespace evenkeel::trainer
