#include "trainer/loop/replica.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/hash.h"
#include "trainer/model/initializer.h"
#include "trainer/model/model.h"
#include "trainer/optim/finite.h"
#include "trainer/optim/learning_rate.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

// Evaluation has no gradients to keep: a batch large enough for full speed, small enough for a small arena.
constexpr std::int64_t kEvaluationBatch = 256;

std::string_view bytes_of(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

Status check_supported(const contract::DatasetSpec& dataset) {
  if (dataset.sharding == contract::ShardingPolicy::kAuto ||
      dataset.sharding == contract::ShardingPolicy::kRecord)
    return {};
  return Error{
      ErrorCode::kUnsupported,
      "spec.dataset.sharding.policy: only Auto and Record are there for format idx (one file, indexable)"};
}

}  // namespace

std::int64_t largest_share(const contract::TrainingJobSpec& spec, std::int64_t train_samples) {
  const std::int64_t batch = std::min(spec.global_batch(), train_samples);
  return (batch + spec.ranks() - 1) / spec.ranks();
}

Result<std::unique_ptr<Replica>> Replica::make(base::Files& files, const contract::TrainingJobSpec& spec,
                                               const ReplicaOptions& options) {
  EVENKEEL_TRY(check_supported(spec.dataset));
  EVENKEEL_ASSIGN(DatasetPair data, load_dataset(files, spec.dataset, output_classes(spec.model)));
  std::unique_ptr<Replica> replica(new Replica(spec, std::move(data)));
  EVENKEEL_TRY(replica->build(options));
  return replica;
}

Status Replica::build(const ReplicaOptions& options) {
  EVENKEEL_ASSIGN(Graph graph, build_model(spec_.model, data_.train.sample_shape, data_.train.num_classes));
  EVENKEEL_ASSIGN(const std::unique_ptr<Optimizer> probe, make_optimizer(spec_.training.optimizer, nullptr));
  EngineOptions engine;
  engine.threads = options.threads;
  engine.plan = {spec_.strategy.bucket_mib, probe->slots()};
  engine.memory_limit_bytes = options.memory_limit_bytes;
  engine.memory_limit_source = options.memory_limit_source;
  engine.other_bytes = data_.train.image_bytes.size() + (data_.eval ? data_.eval->image_bytes.size() : 0);
  EVENKEEL_ASSIGN(engine_,
                  Engine::create(std::move(graph), largest_share(spec_, data_.train.samples), engine));
  EVENKEEL_ASSIGN(optimizer_, make_optimizer(spec_.training.optimizer, &engine_->plan()));
  layers_ = trainer::layer_hashes(engine_->plan());
  initialize_parameters(engine_->plan(), spec_.training.seed, engine_->parameters());

  EVENKEEL_ASSIGN(BatchReader reader,
                  BatchReader::make(data_.train, spec_.dataset.mean, spec_.dataset.stddev));
  train_reader_ = std::make_unique<BatchReader>(std::move(reader));
  if (!data_.eval) return {};
  EVENKEEL_ASSIGN(BatchReader eval, BatchReader::make(*data_.eval, spec_.dataset.mean, spec_.dataset.stddev));
  eval_reader_ = std::make_unique<BatchReader>(std::move(eval));
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
  return views(engine_->parameters(), "");
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
  return base::sha256_hex(base::sha256_hex(bytes_of(engine_->parameters())) +
                          base::sha256_hex(bytes_of(engine_->optimizer_state())));
}

BatchTaken Replica::read_share(std::int64_t epoch, std::int64_t begin, std::int64_t end) {
  const Shuffle shuffle = spec_.dataset.shuffle ? Shuffle::kOn : Shuffle::kOff;
  const EpochOrder order(static_cast<std::uint64_t>(data_.train.samples), shuffle, spec_.dataset.shuffle_seed,
                         static_cast<std::uint64_t>(epoch));
  return train_reader_->read(order, begin, end, batch_);
}

Result<StepSums> Replica::forward() {
  EVENKEEL_ASSIGN(executor_, engine_->executor(batch_.samples(), PlanMode::kTraining));
  const LossSums sums = executor_->forward(batch_.features, batch_.labels);
  return StepSums{sums.loss, sums.count, sums.correct};
}

void Replica::backward(GradientReduction& reduction) {
  executor_->backward([&reduction](int bucket) { reduction.on_bucket_ready(bucket); });
}

Result<Replica::Applied> Replica::apply(const contract::StepPlan& plan, const ReducedSums& sums) {
  EVENKEEL_TRY(check_loss(sums.loss, plan.step));
  EVENKEEL_TRY(check_gradients(engine_->plan(), engine_->gradients(), plan.step));
  Applied applied;
  const std::int64_t before = plan.epoch * data_.train.samples + plan.cuts.front();
  const double position = std::min(1.0, static_cast<double>(before) / static_cast<double>(planned_samples()));
  EVENKEEL_ASSIGN(applied.learning_rate,
                  learning_rate(spec_.training, spec_.global_batch(), spec_.global_batch(), position));
  if (sums.count > 0) {
    applied.gradient_norm = std::sqrt(squared_norm(engine_->gradients())) / static_cast<double>(sums.count);
  }
  optimizer_->step(engine_->parameters(), engine_->gradients(), engine_->optimizer_state(),
                   {applied.learning_rate, static_cast<double>(sums.count)});
  return applied;
}

Result<EvaluationSums> Replica::evaluate(std::int64_t begin, std::int64_t end) {
  EvaluationSums total;
  HostBatch batch;
  const EpochOrder order(static_cast<std::uint64_t>(data_.eval->samples), Shuffle::kOff, 0, 0);
  for (std::int64_t at = begin; at < end; at += batch.samples()) {
    (void)eval_reader_->read(order, at, std::min(end, at + kEvaluationBatch), batch);
    EVENKEEL_ASSIGN(Executor* const executor, engine_->executor(batch.samples(), PlanMode::kEvaluation));
    const LossSums sums = executor->forward(batch.features, batch.labels);
    total.loss += sums.loss;
    total.correct += sums.correct;
    total.samples += sums.count;
  }
  return total;
}

std::int64_t Replica::planned_samples() const {
  const std::int64_t samples = data_.train.samples;
  if (spec_.training.epochs) return *spec_.training.epochs * samples;
  const std::int64_t steps_per_epoch = (samples + spec_.global_batch() - 1) / spec_.global_batch();
  const std::int64_t rest = *spec_.training.steps % steps_per_epoch;
  return *spec_.training.steps / steps_per_epoch * samples + std::min(samples, rest * spec_.global_batch());
}

}  // namespace evenkeel::trainer
