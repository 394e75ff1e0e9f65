// A spec that has passed validation -> values. Whatever reads a member here may rely on its type.
#include <array>
#include <string_view>
#include <utility>

#include "contract/job/validate.h"

namespace evenkeel::contract {
namespace {

using base::bool_at;
using base::child;
using base::double_at;
using base::int_at;
using base::string_at;

template <class E, std::size_t N>
E one_of(const Json& object, std::string_view key,
         const std::array<std::pair<std::string_view, E>, N>& names) {
  const std::string value = string_at(object, key);
  for (const auto& [name, result] : names) {
    if (value == name) return result;
  }
  return names[0].second;
}

template <class E, class... Pairs>
constexpr auto names_of(Pairs... pairs) {
  return std::array<std::pair<std::string_view, E>, sizeof...(pairs)>{pairs...};
}

std::optional<std::int64_t> optional_int(const Json& object, std::string_view key) {
  if (!child(object, key).is_number_integer()) return std::nullopt;
  return int_at(object, key);
}

std::optional<double> optional_double(const Json& object, std::string_view key) {
  if (!child(object, key).is_number()) return std::nullopt;
  return double_at(object, key);
}

std::vector<std::string> strings(const Json& list) {
  std::vector<std::string> values;
  for (const Json& item : list) values.push_back(item.get<std::string>());
  return values;
}

template <class T>
std::vector<T> numbers(const Json& list) {
  std::vector<T> values;
  for (const Json& item : list) values.push_back(item.get<T>());
  return values;
}

// Null where absent, unlike child().
Json volume_of(const Json& object) {
  const auto found = object.find("volume");
  return found == object.end() ? Json() : *found;
}

PodShape pod_shape(const Json& group) {
  return {child(group, "resources"), child(group, "podOptions")};
}

StrategySpec decode_strategy(const Json& json) {
  using enum StrategyType;
  StrategySpec out;
  using P = std::pair<std::string_view, StrategyType>;
  out.type = one_of(json, "type",
                    names_of<StrategyType>(P{"MultiWorkerMirrored", kMultiWorkerMirrored},
                                           P{"OneDevice", kOneDevice}, P{"Mirrored", kMirrored},
                                           P{"ParameterServer", kParameterServer}, P{"TPU", kTpu}));
  out.all_reduce = string_at(json, "allReduce") == "Ring" ? AllReduce::kRing : AllReduce::kAuto;
  out.bucket_mib = double_at(json, "bucketMiB");
  return out;
}

WorkersSpec decode_workers(const Json& json) {
  WorkersSpec out;
  out.replicas = static_cast<int>(int_at(json, "replicas", 1));
  if (auto value = optional_int(json, "minReplicas")) out.min_replicas = static_cast<int>(*value);
  if (auto value = optional_int(json, "maxReplicas")) out.max_replicas = static_cast<int>(*value);
  out.devices_per_replica = static_cast<int>(int_at(json, "devicesPerReplica", 1));
  out.device = string_at(json, "device") == "cuda" ? Device::kCuda : Device::kCpu;
  out.image = string_at(json, "image");
  out.command = strings(child(json, "command"));
  out.args = strings(child(json, "args"));
  out.shape = pod_shape(json);
  for (const Json& item : child(json, "overrides")) {
    out.overrides.push_back({numbers<int>(child(item, "replicas")), pod_shape(item)});
  }
  return out;
}

LayerSpec decode_layer(const Json& json) {
  LayerSpec out;
  out.type = string_at(json, "type");
  out.name = string_at(json, "name");
  out.units = static_cast<int>(int_at(json, "units"));
  out.activation = string_at(json, "activation");
  out.bias = bool_at(json, "bias", true);
  out.initializer = string_at(json, "initializer", out.initializer);
  out.filters = static_cast<int>(int_at(json, "filters"));
  out.kernel_size = numbers<int>(child(json, "kernelSize"));
  out.strides = numbers<int>(child(json, "strides"));
  out.padding = string_at(json, "padding");
  out.pads = numbers<int>(child(json, "pads"));
  out.dilation = numbers<int>(child(json, "dilation"));
  out.groups = static_cast<int>(int_at(json, "groups", 1));
  out.momentum = optional_double(json, "momentum");
  out.epsilon = optional_double(json, "epsilon");
  out.rate = double_at(json, "rate");
  out.shape = numbers<std::int64_t>(child(json, "shape"));
  out.inputs = strings(child(json, "inputs"));
  return out;
}

ModelSpec decode_model(const Json& json) {
  ModelSpec out;
  out.preset = string_at(json, "preset");
  out.num_classes = static_cast<int>(int_at(child(json, "options"), "numClasses"));
  for (const Json& layer : child(json, "layers")) out.layers.push_back(decode_layer(layer));
  out.init_from = string_at(child(json, "initFrom"), "path");
  out.init_from_skip = strings(base::at_path(json, {"initFrom", "skip"}));
  return out;
}

Augmentation augmentation_of(const std::string& name) {
  if (name == "randomCrop") return Augmentation::kRandomCrop;
  return name == "horizontalFlip" ? Augmentation::kHorizontalFlip : Augmentation::kRandomResizedCrop;
}

DatasetSpec decode_dataset(const Json& json) {
  DatasetSpec out;
  out.format = string_at(json, "format");
  out.path = string_at(json, "path");
  out.volume = volume_of(json);
  out.train_split = string_at(child(json, "split"), "train");
  out.eval_split = string_at(child(json, "split"), "eval");
  out.image_size = numbers<int>(base::at_path(json, {"image", "size"}));
  for (const Json& name : child(json, "augment"))
    out.augment.push_back(augmentation_of(name.get<std::string>()));
  using Cache = std::pair<std::string_view, CacheMode>;
  out.cache = one_of(json, "cache",
                     names_of<CacheMode>(Cache{"None", CacheMode::kNone}, Cache{"Memory", CacheMode::kMemory},
                                         Cache{"Disk", CacheMode::kDisk}));
  out.mean = numbers<double>(base::at_path(json, {"image", "mean"}));
  out.stddev = numbers<double>(base::at_path(json, {"image", "std"}));
  using Policy = std::pair<std::string_view, ShardingPolicy>;
  out.sharding = one_of(child(json, "sharding"), "policy",
                        names_of<ShardingPolicy>(Policy{"Auto", ShardingPolicy::kAuto},
                                                 Policy{"Record", ShardingPolicy::kRecord},
                                                 Policy{"File", ShardingPolicy::kFile},
                                                 Policy{"Off", ShardingPolicy::kOff}));
  out.shuffle = bool_at(child(json, "shuffle"), "enabled", true);
  out.shuffle_seed = static_cast<std::uint64_t>(int_at(child(json, "shuffle"), "seed", 42));
  const Json& bad = child(json, "onBadRecord");
  out.bad_record_action =
      string_at(bad, "action") == "Skip" ? BadRecordAction::kSkip : BadRecordAction::kFail;
  out.max_skipped = int_at(bad, "maxSkipped");
  return out;
}

OptimizerSpec decode_optimizer(const Json& json) {
  OptimizerSpec out;
  out.type = string_at(json, "type", out.type);
  out.learning_rate = double_at(json, "learningRate", out.learning_rate);
  out.momentum = double_at(json, "momentum", out.momentum);
  out.weight_decay = double_at(json, "weightDecay", out.weight_decay);
  out.convention =
      string_at(json, "convention") == "Keras" ? OptimizerConvention::kKeras : OptimizerConvention::kPyTorch;
  out.nesterov = bool_at(json, "nesterov");
  out.beta1 = double_at(json, "beta1", out.beta1);
  out.beta2 = double_at(json, "beta2", out.beta2);
  out.epsilon = optional_double(json, "epsilon");
  out.trust_coefficient = double_at(json, "trustCoefficient", out.trust_coefficient);
  return out;
}

ScheduleSpec decode_schedule(const Json& json) {
  using P = std::pair<std::string_view, Schedule>;
  ScheduleSpec out;
  out.kind = one_of(json, "schedule",
                    names_of<Schedule>(P{"constant", Schedule::kConstant}, P{"step", Schedule::kStep},
                                       P{"cosine", Schedule::kCosine}, P{"poly", Schedule::kPoly}));
  out.warmup_epochs = double_at(json, "warmupEpochs");
  out.milestones = numbers<double>(child(json, "milestones"));
  out.gamma = double_at(json, "gamma", out.gamma);
  out.power = double_at(json, "power", out.power);
  out.final_share = double_at(json, "final", out.final_share);
  return out;
}

BatchNormSpec decode_batch_norm(const Json& json) {
  using P = std::pair<std::string_view, BatchNormStatistics>;
  BatchNormSpec out;
  out.statistics = one_of(json, "statistics",
                          names_of<BatchNormStatistics>(P{"Ghost", BatchNormStatistics::kGhost},
                                                        P{"Local", BatchNormStatistics::kLocal},
                                                        P{"Sync", BatchNormStatistics::kSync}));
  if (auto group = optional_int(json, "group")) out.group = static_cast<int>(*group);
  return out;
}

TrainingSpec decode_training(const Json& json) {
  using enum LearningRateScaling;
  using P = std::pair<std::string_view, LearningRateScaling>;
  TrainingSpec out;
  out.epochs = optional_int(json, "epochs");
  out.steps = optional_int(json, "steps");
  out.global_batch = optional_int(child(json, "batchSize"), "global");
  out.batch_per_replica = optional_int(child(json, "batchSize"), "perReplica");
  out.scaling = string_at(json, "scaling") == "Strong" ? Scaling::kStrong : Scaling::kWeak;
  out.optimizer = decode_optimizer(child(json, "optimizer"));
  const Json& rate = child(json, "learningRate");
  out.learning_rate_scaling = one_of(rate, "scaling",
                                     names_of<LearningRateScaling>(P{"Auto", kAuto}, P{"None", kNone},
                                                                   P{"Linear", kLinear}, P{"Sqrt", kSqrt}));
  out.schedule = decode_schedule(rate);
  out.batch_norm = decode_batch_norm(child(json, "batchNorm"));
  using Loss = std::pair<std::string_view, LossNormalization>;
  out.loss_normalization =
      one_of(json, "lossNormalization",
             names_of<LossNormalization>(Loss{"ActualGlobal", LossNormalization::kActualGlobal},
                                         Loss{"ConstantGlobal", LossNormalization::kConstantGlobal},
                                         Loss{"PerReplicaMean", LossNormalization::kPerReplicaMean}));
  out.gradient_clip_norm = double_at(json, "gradientClipNorm");
  out.label_smoothing = double_at(json, "labelSmoothing");
  out.seed = static_cast<std::uint64_t>(int_at(json, "seed", 1));
  out.confusion_matrix = bool_at(json, "confusionMatrix");
  out.reproducible = bool_at(json, "reproducible");
  out.evaluate_every = int_at(json, "evaluateEvery", 1);
  return out;
}

RestartSpec decode_restart(const Json& json) {
  using enum RestartAction;
  using P = std::pair<std::string_view, RestartAction>;
  RestartSpec out;
  out.scope = string_at(json, "scope") == "Job" ? RestartScope::kJob : RestartScope::kWorker;
  out.max_restarts = static_cast<int>(int_at(json, "maxRestarts", out.max_restarts));
  for (const Json& rule : child(json, "rules")) {
    const RestartAction action = one_of(
        rule, "action",
        names_of<RestartAction>(P{"Restart", kRestart}, P{"RestartIgnoringLimit", kRestartIgnoringLimit},
                                P{"FailJob", kFailJob}));
    out.rules.push_back({numbers<int>(child(rule, "onExitCodes")), bool_at(rule, "onDisruption"), action});
  }
  out.failure_detection_seconds =
      static_cast<int>(int_at(json, "failureDetectionSeconds", out.failure_detection_seconds));
  out.terminating_timeout_seconds = static_cast<int>(int_at(json, "terminatingTimeoutSeconds"));
  return out;
}

CheckpointSpec decode_checkpoint(const Json& json) {
  CheckpointSpec out;
  out.path = string_at(json, "path");
  out.volume = volume_of(json);
  out.every_steps = int_at(json, "everySteps", out.every_steps);
  out.keep = static_cast<int>(int_at(json, "keep", out.keep));
  out.on_suspend = bool_at(json, "onSuspend", out.on_suspend);
  return out;
}

void decode_operations(const Json& json, TrainingJobSpec* out) {
  using Mode = std::pair<std::string_view, BalanceMode>;
  using Tune = std::pair<std::string_view, TuneMode>;
  using Policy = std::pair<std::string_view, PodCleanPolicy>;
  out->balance_mode =
      one_of(child(json, "balance"), "mode",
             names_of<BalanceMode>(Mode{"Observe", BalanceMode::kObserve}, Mode{"Off", BalanceMode::kOff},
                                   Mode{"Rebalance", BalanceMode::kRebalance}));
  out->straggler_threshold =
      double_at(child(json, "balance"), "stragglerThreshold", out->straggler_threshold);
  out->tune_mode = one_of(child(json, "tune"), "mode",
                          names_of<TuneMode>(Tune{"Off", TuneMode::kOff}, Tune{"Advise", TuneMode::kAdvise},
                                             Tune{"Apply", TuneMode::kApply}));
  out->max_global_batch = int_at(child(json, "tune"), "maxGlobalBatch");
  out->restart = decode_restart(child(json, "restart"));
  out->start_deadline_seconds = int_at(child(json, "deadlines"), "startSeconds");
  out->active_deadline_seconds = int_at(child(json, "deadlines"), "activeSeconds");
  out->pod_policy = one_of(
      child(json, "cleanup"), "podPolicy",
      names_of<PodCleanPolicy>(Policy{"Running", PodCleanPolicy::kRunning},
                               Policy{"All", PodCleanPolicy::kAll}, Policy{"None", PodCleanPolicy::kNone}));
  out->ttl_seconds_after_finished = optional_int(child(json, "cleanup"), "ttlSecondsAfterFinished");
  out->priority_class_name = string_at(child(json, "scheduling"), "priorityClassName");
  out->checkpoint = decode_checkpoint(child(json, "checkpoint"));
  out->preflight = base::string_at(child(json, "preflight"), "mode", "Auto") == "Auto";
  out->metrics_port = static_cast<int>(int_at(child(json, "metrics"), "port", out->metrics_port));
  out->metrics_linger_seconds = static_cast<int>(int_at(child(json, "metrics"), "linger"));
}

// `json` is valid and has its defaults.
TrainingJobSpec decode_valid_spec(const Json& json) {
  TrainingJobSpec out;
  out.suspend = bool_at(json, "suspend");
  out.managed_by = string_at(json, "managedBy");
  out.strategy = decode_strategy(child(json, "strategy"));
  out.workers = decode_workers(child(json, "workers"));
  out.coordinator = pod_shape(child(json, "coordinator"));
  out.model = decode_model(child(json, "model"));
  out.dataset = decode_dataset(child(json, "dataset"));
  out.training = decode_training(child(json, "training"));
  decode_operations(json, &out);
  return out;
}

ObjectMeta decode_meta(const Json& json) {
  ObjectMeta out;
  out.name = string_at(json, "name");
  out.name_space = string_at(json, "namespace");
  out.uid = string_at(json, "uid");
  out.resource_version = string_at(json, "resourceVersion");
  out.generation = int_at(json, "generation");
  out.creation_timestamp = string_at(json, "creationTimestamp");
  out.deletion_timestamp = string_at(json, "deletionTimestamp");
  return out;
}

base::Error all_errors(const std::vector<FieldError>& errors) {
  std::string text;
  for (const FieldError& error : errors) text += (text.empty() ? "" : "; ") + error.text();
  return {base::ErrorCode::kInvalidInput, text};
}

}  // namespace

base::Result<TrainingJob> decode_job(const Json& object) {
  const std::vector<FieldError> errors = validate_job(object);
  if (!errors.empty()) return all_errors(errors);
  TrainingJob job;
  job.meta = decode_meta(child(object, "metadata"));
  job.spec_json = with_defaults(child(object, "spec"));
  job.spec = decode_valid_spec(job.spec_json);
  const auto status = object.find("status");
  if (status != object.end()) job.status_json = *status;
  return job;
}

base::Result<TrainingJobSpec> decode_spec(const Json& spec) {
  const std::vector<FieldError> errors = validate_spec(spec);
  if (!errors.empty()) return all_errors(errors);
  return decode_valid_spec(with_defaults(spec));
}

}  // namespace evenkeel::contract
