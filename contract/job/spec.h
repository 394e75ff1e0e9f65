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
enum class Schedule { kConstant, kCosine };
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
};

// One layer of `model.layers`; members that a type does not use keep their defaults.
struct LayerSpec {
  std::string type;  // dense | flatten | relu
  std::string name;  // empty: type + "_" + 1-based count of that type
  int units = 0;
  std::string activation;  // "" | relu
  bool bias = true;
  std::string initializer =
      "heNormal";  // kernel: heNormal | heUniform | glorotUniform; see training-semantics 4
};

struct ModelSpec {
  std::string preset;   // "" if layers
  int num_classes = 0;  // options.numClasses; 0 = as many as the data set has
  std::vector<LayerSpec> layers;
};

struct DatasetSpec {
  std::string format;  // idx
  std::string path;    // inside the pod
  Json volume;         // null, or the pod volume source
  std::string train_split = "train";
  std::string eval_split = "test";
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
};

struct TrainingSpec {
  std::optional<std::int64_t> epochs;  // exactly one of epochs, steps
  std::optional<std::int64_t> steps;
  std::optional<std::int64_t> global_batch;  // exactly one of global, perReplica
  std::optional<std::int64_t> batch_per_replica;
  Scaling scaling = Scaling::kWeak;
  OptimizerSpec optimizer;
  LearningRateScaling learning_rate_scaling = LearningRateScaling::kAuto;
  Schedule schedule = Schedule::kConstant;
  std::uint64_t seed = 1;
  std::int64_t evaluate_every = 1;  // epochs; 0 = only at the end
};

struct RestartRule {
  std::vector<int> on_exit_codes;  // empty: not asked
  bool on_disruption = false;
  RestartAction action = RestartAction::kRestart;
};

struct RestartSpec {
  RestartScope scope = RestartScope::kJob;
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
  BalanceMode balance_mode = BalanceMode::kObserve;
  double straggler_threshold = 0.75;
  TuneMode tune_mode = TuneMode::kOff;
  RestartSpec restart;
  std::int64_t start_deadline_seconds = 0;   // 0 = none
  std::int64_t active_deadline_seconds = 0;  // 0 = none
  PodCleanPolicy pod_policy = PodCleanPolicy::kRunning;
  std::optional<std::int64_t> ttl_seconds_after_finished;
  std::string priority_class_name;
  CheckpointSpec checkpoint;
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
