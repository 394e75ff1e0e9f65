// The TrainingJob as a value: what decode() makes of a valid object, defaults filled in. Operator, trainer
// and cli read this and nothing else of a manifest. Kubernetes' own types (resources, volumes, pod options)
// stay JSON: they are validated by schema.h and passed on. Pure data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace evenkeel::contract {

using base::Json;

enum class StrategyType { kOneDevice, kMirrored, kMultiWorkerMirrored, kParameterServer, kTpu };
enum class AllReduce { kAuto, kRing };
enum class Device { kCpu, kCuda };
enum class Scaling { kWeak, kStrong };
enum class LearningRateScaling { kAuto, kNone, kLinear, kSqrt };
enum class Schedule { kConstant, kStep, kCosine, kPoly };
enum class BatchNormStatistics { kGhost, kLocal, kSync };
enum class CacheMode { kNone, kMemory, kDisk };
enum class Augmentation { kRandomResizedCrop, kRandomCrop, kHorizontalFlip };
enum class OptimizerConvention { kPyTorch, kKeras };
enum class LossNormalization { kActualGlobal, kConstantGlobal, kPerReplicaMean };
enum class ShardingPolicy { kAuto, kRecord, kFile, kOff };
enum class BadRecordAction { kFail, kSkip };
enum class BalanceMode { kOff, kObserve, kRebalance };
enum class TuneMode { kOff, kAdvise, kApply };
enum class RestartScope { kWorker, kJob };
enum class RestartAction { kRestart, kRestartIgnoringLimit, kFailJob };
enum class PodCleanPolicy { kRunning, kAll, kNone };

struct StrategySpec {
  StrategyType type = StrategyType::kMultiWorkerMirrored;
  AllReduce all_reduce = AllReduce::kAuto;
  double bucket_mib = 0;  // 0 = chosen by the trainer
};

// {"limits": {...}, "requests": {...}} as given, and pod options as given.
struct PodShape {
  Json resources = Json::object();
  Json pod_options = Json::object();
};

struct WorkerOverride {
  std::vector<int> replicas;
  PodShape shape;  // merged over the group's, member by member
};

struct WorkersSpec {
  int replicas = 1;
  std::optional<int> min_replicas;
  std::optional<int> max_replicas;
  int devices_per_replica = 1;
  Device device = Device::kCpu;
  std::string image;
  std::vector<std::string> command;
  std::vector<std::string> args;
  PodShape shape;
  std::vector<WorkerOverride> overrides;

  bool scalable() const { return min_replicas.has_value(); }
  // The most that this job may come to have while it runs.
  int most() const { return max_replicas.value_or(replicas); }
};

// One layer of `model.layers`; members that a type does not use keep their defaults. Lists of sizes are as
// written: [both], [height, width], for pads also [top, left, bottom, right].
struct LayerSpec {
  std::string
      type;  // dense flatten relu conv2d batchNorm maxPool avgPool globalAvgPool dropout add reshape shortcut
  std::string name;              // empty: type + "_" + 1-based count of that type
  int units = 0;                 // dense
  int filters = 0;               // conv2d, shortcut: output channels
  std::vector<int> kernel_size;  // conv2d and pools; 1 or 2
  std::vector<int> strides;      // 0 to 2; empty: 1, for pools the window
  std::string padding;           // "" = valid | same
  std::vector<int> pads;         // empty: as `padding` says
  std::vector<int> dilation;     // empty: 1
  int groups = 1;
  std::string activation;  // "" | relu
  bool bias = true;
  std::string initializer =
      "heNormal";                   // kernel: heNormal | heUniform | glorotUniform; see training-semantics 4
  std::optional<double> momentum;   // batchNorm: share of the new in running statistics
  std::optional<double> epsilon;    // batchNorm
  double rate = 0;                  // dropout
  std::vector<std::int64_t> shape;  // reshape: of a sample
  std::vector<std::string> inputs;  // layers that feed this one ("input": the samples); empty: the one before
};

struct ModelSpec {
  std::string preset;   // "" if layers
  int num_classes = 0;  // options.numClasses; 0 = as many as the data set has
  std::vector<LayerSpec> layers;
  std::string init_from;                    // a safetensors file; "" = random weights
  std::vector<std::string> init_from_skip;  // ECMAScript expressions for names that are not loaded
};

struct DatasetSpec {
  std::string format;  // idx | cifar10 | tfrecord | imagefolder | webdataset
  std::string path;    // inside the pod
  Json volume;         // null, or the pod volume source
  std::string train_split = "train";
  std::string eval_split = "test";
  std::vector<int> image_size;        // {height, width}; empty: the size of the data
  std::vector<Augmentation> augment;  // of training images, in order
  CacheMode cache = CacheMode::kNone;
  std::vector<double> mean;  // per channel, of x/255; empty = 0
  std::vector<double> stddev;
  ShardingPolicy sharding = ShardingPolicy::kAuto;
  bool shuffle = true;
  std::uint64_t shuffle_seed = 42;
  BadRecordAction bad_record_action = BadRecordAction::kFail;
  std::int64_t max_skipped = 0;
};

struct OptimizerSpec {
  std::string type = "sgd";
  double learning_rate = 0.1;
  double momentum = 0.9;
  double weight_decay = 0.0;
  OptimizerConvention convention = OptimizerConvention::kPyTorch;
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  std::optional<double> epsilon;  // adam: 1e-8 (Keras 1e-7); lars: 0
  double trust_coefficient = 0.001;
};

// The course of the learning rate; epochs are fractions of passes over the training data.
struct ScheduleSpec {
  Schedule kind = Schedule::kConstant;
  double warmup_epochs = 0;
  std::vector<double> milestones;  // kStep, ascending or not
  double gamma = 0.1;              // kStep
  double power = 1;                // kPoly
  double final_share = 0;          // kCosine, kPoly: of the base rate
};

struct BatchNormSpec {
  BatchNormStatistics statistics = BatchNormStatistics::kGhost;
  std::optional<int> group;  // samples; absent: 16, or the per-rank batch if smaller
};

struct TrainingSpec {
  std::optional<std::int64_t> epochs;  // exactly one of epochs, steps
  std::optional<std::int64_t> steps;
  std::optional<std::int64_t> global_batch;  // exactly one of global, perReplica
  std::optional<std::int64_t> batch_per_replica;
  Scaling scaling = Scaling::kWeak;
  OptimizerSpec optimizer;
  LearningRateScaling learning_rate_scaling = LearningRateScaling::kAuto;
  ScheduleSpec schedule;
  BatchNormSpec batch_norm;
  LossNormalization loss_normalization = LossNormalization::kActualGlobal;
  double gradient_clip_norm = 0;  // 0 = off
  double label_smoothing = 0;
  std::uint64_t seed = 1;
  std::int64_t evaluate_every = 1;  // epochs; 0 = only at the end
  bool confusion_matrix = false;
  bool reproducible = false;  // the same weights to the bit for any ranks, shares and deaths
};

struct RestartRule {
  std::vector<int> on_exit_codes;  // empty: not asked
  bool on_disruption = false;
  RestartAction action = RestartAction::kRestart;
};

struct RestartSpec {
  RestartScope scope = RestartScope::kWorker;
  int max_restarts = 10;
  std::vector<RestartRule> rules;
  int failure_detection_seconds = 10;
  int terminating_timeout_seconds = 0;
};

struct CheckpointSpec {
  std::string path;  // empty: none is written
  Json volume;       // null, or the pod volume source
  std::int64_t every_steps = 500;
  int keep = 3;
  bool on_suspend = true;
};

struct TrainingJobSpec {
  bool suspend = false;
  std::string managed_by;
  StrategySpec strategy;
  WorkersSpec workers;
  PodShape coordinator;
  ModelSpec model;
  DatasetSpec dataset;
  TrainingSpec training;
  BalanceMode balance_mode = BalanceMode::kRebalance;
  double straggler_threshold = 0.75;
  TuneMode tune_mode = TuneMode::kAdvise;
  std::int64_t max_global_batch = 0;  // that a remedy may choose; 0: the batch is left alone
  RestartSpec restart;
  std::int64_t start_deadline_seconds = 0;   // 0 = none
  std::int64_t active_deadline_seconds = 0;  // 0 = none
  PodCleanPolicy pod_policy = PodCleanPolicy::kRunning;
  std::optional<std::int64_t> ttl_seconds_after_finished;
  std::string priority_class_name;
  CheckpointSpec checkpoint;
  bool preflight = true;  // preflight.mode is Auto
  int metrics_port = 9400;
  int metrics_linger_seconds = 0;

  // Ranks = replicas x devicesPerReplica.
  int ranks() const { return workers.replicas * workers.devices_per_replica; }
  // Samples of one step over all ranks (training-semantics 2).
  std::int64_t global_batch() const {
    return training.global_batch ? *training.global_batch : *training.batch_per_replica * ranks();
  }
};

struct ObjectMeta {
  std::string name;
  std::string name_space;
  std::string uid;
  std::string resource_version;
  std::int64_t generation = 0;
  std::string creation_timestamp;  // RFC 3339
  std::string deletion_timestamp;  // empty: not being deleted
};

// One object of the API server (or of a local file: uid and versions are then made up by the reader).
struct TrainingJob {
  ObjectMeta meta;
  TrainingJobSpec spec;
  Json spec_json;    // the spec as valid JSON with defaults filled in: what the trainer configuration carries
  Json status_json;  // as stored; null if none
};

}  // namespace evenkeel::contract
