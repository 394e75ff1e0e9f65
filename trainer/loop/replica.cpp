#include "trainer/loop/replica.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string_view>

#include "base/clock.h"
#include "base/hash.h"
#include "contract/job/sample_groups.h"
#include "trainer/coordinator/shares.h"
#include "trainer/data/stand_in.h"
#include "trainer/model/initializer.h"
#include "trainer/model/model.h"
#include "trainer/optim/finite.h"
#include "trainer/optim/learning_rate.h"
#include "trainer/optim/running_statistics.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;
using contract::LossNormalization;

std::string_view bytes_of(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

// What is read ahead must not crowd out the model.
std::size_t ranges_ahead(std::uint64_t bytes_of_a_share) {
  constexpr std::uint64_t kGenerous = std::uint64_t{64} << 20;
  return bytes_of_a_share <= kGenerous ? 4 : 2;
}

std::int64_t samples_of(const PositionRanges& ranges) {
  return std::accumulate(ranges.begin(), ranges.end(), std::int64_t{0},
                         [](std::int64_t sum, const PositionRange& range) { return sum + range.samples(); });
}

// The reader as a mutant: the first record once more in the place of the last. REQUIRES: two samples.
PositionRanges with_a_repeat(PositionRanges ranges) {
  while (ranges.back().samples() == 0) ranges.pop_back();
  --ranges.back().end;
  const auto first = std::ranges::find_if(ranges, [](const PositionRange& range) { return range.samples() > 0; });
  const PositionRange again{first->begin, first->begin + 1};
  ranges.push_back(again);
  return ranges;
}

void count_confusion(std::span<const std::int32_t> labels, std::span<const float> logits,
                     std::int64_t classes, std::vector<std::int64_t>& confusion) {
  for (std::size_t n = 0; n < labels.size(); ++n) {
    if (labels[n] < 0) continue;
    const auto row = logits.subspan(n * static_cast<std::size_t>(classes), static_cast<std::size_t>(classes));
    const auto taken_for = std::ranges::max_element(row) - row.begin();
    ++confusion[static_cast<std::size_t>(labels[n] * classes + taken_for)];
  }
}

void add(std::span<float> to, std::span<const float> from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

}  // namespace

Result<std::unique_ptr<Replica>> Replica::make(base::Files& files, const contract::TrainingJobSpec& spec,
                                               const ReplicaOptions& options) {
  EVENKEEL_ASSIGN(SplitPair data, open_dataset(files, spec.dataset, output_classes(spec.model)));
  std::unique_ptr<Replica> replica(new Replica(spec, std::move(data)));
  EVENKEEL_TRY(replica->build(files, options));
  return replica;
}

Status Replica::build(base::Files& files, const ReplicaOptions& options) {
  EVENKEEL_ASSIGN(sharding_, choose_sharding(spec_.dataset, *data_.train));
  EVENKEEL_ASSIGN(ModelSetup setup, set_up_model(spec_, train()));
  EVENKEEL_TRY(create_engine(std::move(setup), options));
  EVENKEEL_ASSIGN(optimizer_, make_optimizer(spec_.training.optimizer, &engine_->plan()));
  layers_ = trainer::layer_hashes(engine_->plan());
  initialize_parameters(engine_->plan(), spec_.training.seed, engine_->parameter_arena());
  if (!spec_.model.init_from.empty()) {
    EVENKEEL_ASSIGN(init_from_, load_initial_weights(files, spec_.model.init_from, spec_.model.init_from_skip,
                                                     weights()));
  }
  injection_ = options.injection;
  return create_readers(options);
}

// What stays together in a group of statistics must be computed together.
Status Replica::check_micro_batch(std::int64_t micro_batch, std::int64_t share, std::int64_t granule) const {
  if (micro_batch == 0 || micro_batch >= share || !contract::has_batch_norm(spec_.model)) return {};
  const bool ghost = spec_.training.batch_norm.statistics == contract::BatchNormStatistics::kGhost;
  if (ghost && micro_batch % granule == 0) return {};
  return Error{ErrorCode::kInvalidInput,
               "a micro-batch of " + std::to_string(micro_batch) +
                   " samples would change the batch statistics: " +
                   (ghost ? "use a multiple of batchNorm.group, " + std::to_string(granule)
                          : std::string("with statistics Local or Sync a share is computed at once"))};
}

Status Replica::create_engine(ModelSetup setup, const ReplicaOptions& options) {
  const std::int64_t share = largest_share(spec_, train().samples);
  const std::int64_t granule = contract::share_granule(spec_);
  EVENKEEL_TRY(check_micro_batch(options.micro_batch, share, granule));
  // A unit of the sum is always computed by itself, with the same kernels.
  const std::int64_t at_once = spec_.training.reproducible ? granule : options.micro_batch;
  MemoryBudget budget{options.memory_limit_bytes, options.memory_limit_source, data_.resident_bytes()};
  EVENKEEL_ASSIGN(micro_batch_, at_once > 0
                                    ? Result<std::int64_t>(std::min(share, at_once))
                                    : choose_micro_batch(setup, share, granule, budget));
  if (micro_batch_ < share && setup.plan.statistics == StatisticsMode::kSync &&
      contract::has_batch_norm(spec_.model)) {
    return Error{ErrorCode::kUnsupported,
                 "batchNorm.statistics Sync needs the whole share of a rank at once, but " +
                     std::to_string(share) + " samples do not fit into memory: use Ghost"};
  }
  splits_ = micro_batch_ < share || spec_.training.reproducible;
  whole_shares_ = setup.plan.statistics != StatisticsMode::kGhost && contract::has_batch_norm(spec_.model);
  EVENKEEL_ASSIGN(evaluation_batch_, choose_evaluation_batch(setup, micro_batch_));
  EngineOptions engine;
  engine.threads = options.threads;
  engine.plan = setup.plan;
  engine.memory_limit_bytes = options.memory_limit_bytes;
  engine.memory_limit_source = options.memory_limit_source;
  engine.other_bytes = budget.other_bytes;
  EVENKEEL_ASSIGN(engine_, Engine::create(std::move(setup.graph), micro_batch_, engine));
  return compile_known_batches();
}

// A plan takes a while to compile: all sizes that the shares of an epoch will have are ready before the first
// step.
Status Replica::compile_known_batches() {
  const std::int64_t samples = train().samples, batch = spec_.global_batch();
  const std::int64_t steps = (samples + batch - 1) / batch;
  std::set<std::int64_t> sizes;
  const auto add_step = [&](std::int64_t step) {
    const std::int64_t size = std::min(batch, samples - step * batch);
    for (const std::int64_t share :
         balanced_shares(size, spec_.ranks(), step, contract::share_granule(spec_))) {
      if (share >= micro_batch_) sizes.insert(micro_batch_);
      sizes.insert(share % micro_batch_);
    }
  };
  for (std::int64_t step = 0; step < std::min<std::int64_t>(steps, spec_.ranks()); ++step) add_step(step);
  add_step(steps - 1);
  for (const std::int64_t size : sizes) EVENKEEL_TRY(engine_->executor(size, PlanMode::kTraining));
  return {};
}

Status Replica::create_readers(const ReplicaOptions& options) {
  ReaderOptions reader;
  reader.threads = options.data_threads;
  reader.seed = spec_.training.seed;
  if (options.memory_limit_bytes > 0) {
    // What the model leaves, for both splits; half of it stays free for everything else.
    const std::uint64_t taken = engine_->plan().total_bytes() + data_.resident_bytes();
    const std::uint64_t left = options.memory_limit_bytes > taken ? options.memory_limit_bytes - taken : 0;
    reader.cache_limit_bytes = std::min(reader.cache_limit_bytes, left / 4);
  }
  if (data_.eval) {
    EVENKEEL_ASSIGN(eval_reader_, BatchReader::make(*data_.eval, spec_.dataset, reader));
  }
  reader.augment = true;
  EVENKEEL_ASSIGN(train_reader_, BatchReader::make(*data_.train, spec_.dataset, reader));
  PrefetchOptions prefetch;
  prefetch.shuffle = spec_.dataset.shuffle ? Shuffle::kOn : Shuffle::kOff;
  prefetch.shuffle_seed = spec_.dataset.shuffle_seed;
  prefetch.file_samples = sharding_.file_samples;
  prefetch.passes = sharding_.policy == contract::ShardingPolicy::kOff;
  prefetch.max_ranges = ranges_ahead(
      static_cast<std::uint64_t>(largest_share(spec_, train().samples) * engine_->plan().input_features) *
      sizeof(float));
  prefetcher_ = Prefetcher::start(*train_reader_, prefetch);
  return {};
}

std::string Replica::plan_hash() const {
  return trainer::plan_hash(layers_);
}

std::vector<TensorView> Replica::views(std::span<float> arena, const std::string& suffix) {
  std::vector<TensorView> result;
  for (const PlanParameter& parameter : engine_->plan().parameters) {
    result.push_back(
        {parameter.name + suffix, parameter.shape,
         arena.subspan(parameter.offset_elements, static_cast<std::size_t>(parameter.elements))});
  }
  return result;
}

std::vector<TensorView> Replica::weights() {
  std::vector<TensorView> result = views(engine_->parameters(), "");
  for (const PlanStatistic& s : engine_->plan().statistics) {
    const auto view = [&](std::uint64_t offset) {
      return engine_->parameter_arena().subspan(offset, static_cast<std::size_t>(s.channels));
    };
    result.push_back({s.layer + ".running_mean", {s.channels}, view(s.mean_offset_elements)});
    result.push_back({s.layer + ".running_var", {s.channels}, view(s.variance_offset_elements)});
  }
  return result;
}

std::vector<TensorView> Replica::optimizer_state() {
  std::vector<TensorView> result;
  const std::size_t slot_elements = engine_->parameters().size();
  for (int slot = 0; slot < optimizer_->slots(); ++slot) {
    const auto part =
        engine_->optimizer_state().subspan(static_cast<std::size_t>(slot) * slot_elements, slot_elements);
    for (TensorView& view : views(part, std::string(".") + optimizer_->slot_name(slot)))
      result.push_back(std::move(view));
  }
  return result;
}

std::string Replica::parameter_hash() {
  return base::sha256_hex(base::sha256_hex(bytes_of(engine_->parameter_arena())) +
                          base::sha256_hex(bytes_of(engine_->optimizer_state())));
}

void Replica::join(Collective& collective) {
  if (engine_->plan().statistics_mode != StatisticsMode::kSync || engine_->plan().statistics.empty()) return;
  constexpr std::uint32_t kStatisticsBucket = 0xFFFF;  // in no plan: an exchange never meets a gradient
  engine_->set_statistics_exchange(
      [&collective](std::span<double> values) { return collective.all_reduce(values, kStatisticsBucket); });
}

void Replica::prepare_share(const PositionRanges& ranges) {
  const std::int64_t samples = samples_of(ranges);
  // An error is the step's to tell.
  const std::int64_t part = at_once(samples);
  if (samples >= part) (void)engine_->executor(part, PlanMode::kTraining);
  const std::int64_t rest = samples % part;
  if (rest > 0 || samples == 0) (void)engine_->executor(rest, PlanMode::kTraining);
}

// As at_once() and prepare_share() will ask for it; whether a larger share fits is told when it is compiled.
void Replica::compile_ahead(std::int64_t samples) {
  const bool larger = samples > micro_batch_;
  const std::int64_t part = larger && (whole_shares_ || !splits_) ? samples : micro_batch_;
  if (samples >= part) engine_->expect(part, PlanMode::kTraining);
  if (const std::int64_t rest = samples % part; rest > 0 || samples == 0)
    engine_->expect(rest, PlanMode::kTraining);
}

void Replica::expect_share(std::int64_t epoch, const PositionRanges& ranges) {
  const std::int64_t samples = samples_of(ranges);
  compile_ahead(samples);
  if (samples > 0) (void)prefetcher_->hint(static_cast<std::uint64_t>(epoch), ranges);
}

Result<BatchTaken> Replica::read_share(std::int64_t epoch, const PositionRanges& ranges) {
  const std::int64_t samples = samples_of(ranges);
  slow_down(injection_.input_seconds(samples));
  epoch_ = epoch;
  taken_ = {};
  if (samples == 0) {
    batch_.clear();
    at_once_ = at_once(0);
    return taken_;
  }
  Result<BatchTaken> taken = prefetcher_->take(
      static_cast<std::uint64_t>(epoch), injection_.repeats_record(samples) ? with_a_repeat(ranges) : ranges, batch_);
  data_failed_ = !taken.ok();
  if (taken.ok()) taken_ = *taken;
  give_stand_ins();
  at_once_ = at_once(batch_.samples());
  return taken;
}

std::uint64_t Replica::decoded_bytes() const {
  if (spec_.dataset.cache != contract::CacheMode::kNone || data_.train->form() != RecordForm::kEncoded) return 0;
  const std::uint64_t bytes = static_cast<std::uint64_t>(train().samples) *
                              static_cast<std::uint64_t>(engine_->plan().input_features);
  return bytes <= ReaderOptions().cache_limit_bytes ? bytes : 0;
}

double Replica::work_of(const BatchTaken& taken) const {
  return data_.train->form() == RecordForm::kEncoded ? static_cast<double>(taken.bytes_read) : 0;
}

// Of a share that was skipped as a whole nothing is left to compute.
void Replica::give_stand_ins() {
  if (taken_.skipped == 0) return;
  if (taken_.consumed == 0) return batch_.clear();
  if (!contract::has_batch_norm(spec_.model)) return;
  const bool ghost = spec_.training.batch_norm.statistics == contract::BatchNormStatistics::kGhost;
  stand_in_for_skipped(batch_, ghost ? contract::ghost_group(spec_) : 0);
}

Status Replica::skip_from_now_on(const std::vector<std::int64_t>& ids) {
  train_reader_->skip_from_now_on(ids);
  const std::int64_t skipped = train_reader_->distinct_skipped();
  if (ids.empty() || skipped <= spec_.dataset.max_skipped) return {};
  data_failed_ = true;
  return Error{ErrorCode::kCorruptData, data_.train->where(ids.back()) + ": cannot be read: " +
                                            std::to_string(skipped) +
                                            " bad records, more than dataset.onBadRecord.maxSkipped = " +
                                            std::to_string(spec_.dataset.max_skipped)};
}

void Replica::inject_into_gradients() {
  if (!injection_.drops_gradient()) return;
  std::ranges::fill(engine_->gradient_arena(), 0.0f);
  if (spec_.training.reproducible) fixed_.clear(engine_->gradient_arena().size());
}

void Replica::slow_down(double seconds) const {
  if (seconds > 0) base::real_clock().sleep_for(base::from_seconds(seconds));
}

// Shares grow when a rank is lost or is slower than others. They are still computed at once where memory
// allows; else they take several micro-batches.
std::int64_t Replica::at_once(std::int64_t samples) {
  if (samples <= micro_batch_) return micro_batch_;
  if (!whole_shares_ && !splits_) splits_ = !engine_->executor(samples, PlanMode::kTraining).ok();
  return whole_shares_ || !splits_ ? samples : micro_batch_;
}

int Replica::micro_batches() const {
  return static_cast<int>(std::max<std::int64_t>(1, (batch_.samples() + at_once_ - 1) / at_once_));
}

StepInput Replica::input_of(int micro) const {
  const auto begin = static_cast<std::size_t>(micro * at_once_);
  const std::size_t count = std::min(static_cast<std::size_t>(at_once_), batch_.labels.size() - begin);
  const auto features = static_cast<std::size_t>(engine_->plan().input_features);
  StepInput input;
  input.features = std::span(batch_.features).subspan(begin * features, count * features);
  input.labels = std::span(batch_.labels).subspan(begin, count);
  input.ids = std::span(batch_.ids).subspan(begin, count);
  input.epoch = static_cast<std::uint64_t>(epoch_);
  input.seed = spec_.training.seed;
  // The mean of this rank's samples, as Keras and DDP have it; the division by the ranks comes with the
  // update.
  if (spec_.training.loss_normalization == LossNormalization::kPerReplicaMean && taken_.consumed > 0)
    input.gradient_scale = static_cast<float>(1.0 / static_cast<double>(taken_.consumed));
  return input;
}

Result<StepSums> Replica::forward(int micro) {
  const StepInput input = input_of(micro);
  slow_down(injection_.compute_seconds(static_cast<std::int64_t>(input.labels.size())) +
            (micro == 0 ? injection_.once_seconds() : 0));
  EVENKEEL_ASSIGN(executor_,
                  engine_->executor(static_cast<std::int64_t>(input.labels.size()), PlanMode::kTraining));
  EVENKEEL_ASSIGN(const LossSums sums, executor_->forward(input));
  return StepSums{sums.loss, sums.count, sums.correct};
}

// Buckets are ready with the last micro-batch, each as soon as what was kept of the others is added.
Status Replica::backward(int micro, GradientReduction& reduction) {
  const bool last = micro + 1 == micro_batches();
  if (spec_.training.reproducible) return add_unit(micro, last, reduction);
  if (!last) {
    EVENKEEL_TRY(executor_->backward(nullptr));
    keep_gradients(micro);
    return {};
  }
  return executor_->backward([&](int index) {
    if (micro > 0) {
      const Bucket& bucket = engine_->plan().buckets[static_cast<std::size_t>(index)];
      add(engine_->gradient_arena().subspan(bucket.offset_elements, bucket.elements),
          std::span<const float>(kept_gradients_).subspan(bucket.offset_elements, bucket.elements));
    }
    reduction.on_bucket_ready(index);
  });
}

// Each micro-batch is one unit, at the same positions of the order on any number of ranks.
Status Replica::add_unit(int micro, bool last, GradientReduction& reduction) {
  EVENKEEL_TRY(executor_->backward(nullptr));
  if (micro == 0) fixed_.clear(engine_->gradient_arena().size());
  fixed_.add(engine_->gradient_arena());
  for (int bucket = 0; last && bucket < static_cast<int>(engine_->plan().buckets.size()); ++bucket)
    reduction.on_bucket_ready(bucket);
  return {};
}

void Replica::keep_gradients(int micro) {
  const std::span<const float> gradients = engine_->gradient_arena();
  if (micro == 0) {
    kept_gradients_.assign(gradients.begin(), gradients.end());
  } else {
    add(kept_gradients_, gradients);
  }
}

double Replica::divisor(const contract::StepPlan& plan, const ReducedSums& sums) const {
  switch (spec_.training.loss_normalization) {
    case LossNormalization::kConstantGlobal:
      return static_cast<double>(plan.global_batch > 0 ? plan.global_batch : spec_.global_batch());
    case LossNormalization::kPerReplicaMean:
      return static_cast<double>(sums.ranks > 0 ? sums.ranks : spec_.ranks());
    case LossNormalization::kActualGlobal:
      break;
  }
  return static_cast<double>(sums.count);
}

Result<Replica::Applied> Replica::apply(const contract::StepPlan& plan, const ReducedSums& sums) {
  EVENKEEL_TRY(check_loss(sums.loss, plan.step));
  EVENKEEL_TRY(check_gradients(engine_->plan(), engine_->gradient_arena(), plan.step));
  Applied applied;
  RatePosition position;
  position.samples_done = plan.epoch * epoch_samples() + plan.cuts.front();
  position.step_samples = plan.planned();
  position.samples_planned = planned_samples();
  position.train_samples = epoch_samples();
  position.global_batch_at_creation = spec_.global_batch();
  position.global_batch =
      plan.rate_batch > 0 ? plan.rate_batch : static_cast<double>(position.global_batch_at_creation);
  EVENKEEL_ASSIGN(applied.learning_rate, learning_rate(spec_.training, position));
  if (sums.count == 0) return applied;  // every record of the step was bad: nothing was learned
  const double squared = squared_norm(engine_->gradients());
  UpdateArgs update;
  update.learning_rate = applied.learning_rate;
  update.count = divisor(plan, sums);
  update.gradient_scale = clip_scale(squared, update.count, spec_.training.gradient_clip_norm);
  update.step = ++optimizer_steps_;
  EVENKEEL_ASSIGN(update.momentum_correction, momentum_correction(spec_.training, position, rate_batch_));
  rate_batch_ = position.global_batch;
  applied.gradient_norm = std::sqrt(squared) / update.count;
  applied.mean_square = squared / (static_cast<double>(sums.count) * static_cast<double>(sums.count));
  optimizer_->step(engine_->parameters(), engine_->gradients(), engine_->optimizer_state(), update);
  update_running_statistics(engine_->plan(), engine_->parameter_arena(), engine_->gradient_arena());
  return applied;
}

Result<EvaluationSums> Replica::evaluate(std::int64_t begin, std::int64_t end) {
  EvaluationSums total;
  const std::int64_t classes = engine_->plan().classes;
  if (spec_.training.confusion_matrix) total.confusion.resize(static_cast<std::size_t>(classes * classes));
  if (begin == end) return total;  // also where there is no evaluation set
  HostBatch batch;
  const EpochOrder order(static_cast<std::uint64_t>(data_.eval->info().samples), Shuffle::kOff, 0, 0);
  for (std::int64_t at = begin; at < end; at += batch.samples()) {
    const Result<BatchTaken> taken =
        eval_reader_->read(order, 0, at, std::min(end, at + evaluation_batch_), batch);
    data_failed_ = !taken.ok();
    EVENKEEL_TRY(taken);
    EVENKEEL_ASSIGN(Executor* const executor, engine_->executor(batch.samples(), PlanMode::kEvaluation));
    EVENKEEL_ASSIGN(const LossSums sums,
                    executor->forward({.features = batch.features, .labels = batch.labels}));
    total.loss += sums.loss;
    total.correct += sums.correct;
    total.samples += sums.count;
    if (!total.confusion.empty())
      count_confusion(batch.labels, executor->tensor(executor->plan().logits), classes, total.confusion);
  }
  return total;
}

std::int64_t Replica::planned_samples() const {
  const std::int64_t samples = epoch_samples();
  if (spec_.training.epochs) return *spec_.training.epochs * samples;
  const std::int64_t steps_per_epoch = (samples + spec_.global_batch() - 1) / spec_.global_batch();
  const std::int64_t rest = *spec_.training.steps % steps_per_epoch;
  return *spec_.training.steps / steps_per_epoch * samples + std::min(samples, rest * spec_.global_batch());
}

}  // namespace evenkeel::trainer
