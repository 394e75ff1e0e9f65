#include "contract/metrics.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace evenkeel::contract {

namespace {

using Labels = std::vector<LabelInfo>;

const LabelInfo kJob{"trainingjob", {}};
const LabelInfo kRank{"rank", {}};
const LabelInfo kNamespace{"namespace", {}};
const LabelInfo kPhase{"phase",
                       {"input_wait", "h2d_copy", "forward", "backward", "collective_wait", "optimizer",
                        "checkpoint", "eval", "other"}};
const LabelInfo kOp{"op", {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier"}};
const LabelInfo kInputFault{"kind", {"corrupt"}};
const LabelInfo kSplit{"split", {"train", "eval"}};
const LabelInfo kJobPhase{
    "phase", {"Pending", "Starting", "Running", "Restarting", "Suspended", "Succeeded", "Failed"}};
const LabelInfo kReplicaState{"state", {"pending", "running", "ready", "succeeded", "failed", "terminating"}};
const LabelInfo kCause{
    "cause",
    {"scheduling", "image_pull", "startup", "rendezvous", "input_wait", "straggler_wait", "checkpoint_save",
     "checkpoint_restore", "recompute", "restart", "suspended", "other"}};
const LabelInfo kPart{"part", {"compute", "fixed_cost", "input_wait", "imbalance", "communication"}};
const LabelInfo kVerdict{
    "verdict",
    {"Measuring",          "ScalingFine",          "BatchNotScaled",       "TooLittleWork",  "CpuStarved",
     "InputBound",         "ImbalancedShards",     "HeterogeneousDevices", "Straggler",      "VariableWork",
     "CommunicationBound", "CheckpointStall",      "DuplicateData",        "MissingData",    "UnevenSteps",
     "ParameterDrift",     "LossScaledByReplicas", "EmptyBatchNaN",        "ReduceOverflow", "SameOrder",
     "PeerMemoryCorruption", "GradientDiffers"}};
const LabelInfo kAction{"action", {"batch", "shares", "drop_rank", "data_threads", "cache"}};
const LabelInfo kResource{"resource", {"trainingjobs", "pods", "services", "configmaps"}};
const LabelInfo kController{"controller", {"trainingjob"}};
const LabelInfo kQueue{"name", {"trainingjob"}};

// first * factor^k, n of them.
std::vector<double> geometric(double first, double factor, int n) {
  std::vector<double> out;
  for (double value = first; n > 0; --n, value *= factor) out.push_back(value);
  return out;
}

void add_replica(std::vector<MetricInfo>& out) {
  auto add = [&out](std::string name, MetricType type, std::string help, Labels more = {},
                    std::vector<double> buckets = {}) {
    Labels labels{kJob, kRank};
    labels.insert(labels.end(), more.begin(), more.end());
    out.push_back({"evenkeel_replica_" + std::move(name), type, std::move(help), std::move(labels),
                   std::move(buckets), MetricSource::kReplica});
  };
  add("samples_total", MetricType::kCounter,
      "Training samples of the steps this rank has finished; a step that was given up counts where it is done again.");
  add("steps_total", MetricType::kCounter, "Training steps this rank has finished.");
  add("step_duration_seconds", MetricType::kHistogram,
      "Wall time of a training step, without evaluation and checkpoints.", {}, geometric(0.001, 2, 17));
  add("phase_seconds_total", MetricType::kCounter,
      "Wall time by what the rank was doing; the phases of a rank add up to its time in steps. A rank without a core in a reduction counts as in backward.", {kPhase});
  add("last_step_timestamp_seconds", MetricType::kGauge, "Unix time at which the last step ended.");
  add("step", MetricType::kGauge, "Steps committed since the job began.");
  add("epoch", MetricType::kGauge, "Epoch of the last step, from 0.");
  add("shard_samples", MetricType::kGauge,
      "Samples of the current epoch that the plan has given to this rank.");
  add("shard_samples_consumed", MetricType::kGauge,
      "Samples of the current epoch that this rank has consumed.");
  add("shards_assigned", MetricType::kGauge,
      "Contiguous ranges of the epoch's order given to this rank in this epoch.");
  add("batch_samples", MetricType::kGauge, "Samples of this rank in the last step.");
  add("input_errors_total", MetricType::kCounter,
      "Training records that could not be read and were skipped, once in every epoch.", {kInputFault});
  add("collectives_total", MetricType::kCounter, "Collective operations finished.", {kOp});
  add("collective_seconds_total", MetricType::kCounter, "Wall time inside collective operations.", {kOp});
  add("collective_bytes_total", MetricType::kCounter,
      "Payload bytes this rank has sent in collective operations.", {kOp});
  add("restarts_total", MetricType::kCounter,
      "Times this rank was started again in its pod, without the pod being replaced.");
  add("info", MetricType::kGauge, "Constant 1; what this rank is.",
      {{"replica", {}}, {"world_size", {}}, {"backend", {"cpu", "cuda"}}, {"version", {}}});
}

void add_coordinator(std::vector<MetricInfo>& out) {
  auto add = [&out](std::string name, MetricType type, std::string help, Labels more = {},
                    std::vector<double> buckets = {}) {
    Labels labels{kJob};
    labels.insert(labels.end(), more.begin(), more.end());
    out.push_back({"evenkeel_job_" + std::move(name), type, std::move(help), std::move(labels),
                   std::move(buckets), MetricSource::kCoordinator});
  };
  add("loss", MetricType::kGauge, "Mean loss: of the recent training steps, and of the last evaluation.",
      {kSplit});
  add("accuracy_ratio", MetricType::kGauge,
      "Share of samples classified right: in the recent training steps, and in the last evaluation.",
      {kSplit});
  add("learning_rate", MetricType::kGauge, "Learning rate of the last committed step.");
  add("gradient_norm", MetricType::kGauge, "Euclidean norm of the mean gradient of the last committed step.");
  add("nonfinite_steps_total", MetricType::kCounter, "Steps that gave NaN or infinity.",
      {{"kind", {"loss", "gradient"}}});
  add("checkpoint_duration_seconds", MetricType::kHistogram, "Wall time of saving or restoring a checkpoint.",
      {{"operation", {"save", "restore"}}}, geometric(0.01, 2, 14));
  add("checkpoint_failures_total", MetricType::kCounter, "Checkpoints that could not be saved or restored.",
      {{"operation", {"save", "restore"}}});
  add("checkpoint_size_bytes", MetricType::kGauge, "Size of the last checkpoint.");
  add("checkpoint_last_success_timestamp_seconds", MetricType::kGauge,
      "Unix time of the last saved checkpoint.");
  add("checkpoint_last_step", MetricType::kGauge, "Step of the last saved checkpoint.");
  add("checkpoint_interval_seconds", MetricType::kGauge,
      "Expected time between checkpoints: everySteps x recent step time.");
}

void add_operator_state(std::vector<MetricInfo>& out) {
  auto add = [&out](std::string name, MetricType type, std::string help, Labels more = {}) {
    Labels labels{kNamespace, kJob};
    labels.insert(labels.end(), more.begin(), more.end());
    out.push_back({"evenkeel_job_" + std::move(name),
                   type,
                   std::move(help),
                   std::move(labels),
                   {},
                   MetricSource::kOperatorState});
  };
  add("status_phase", MetricType::kGauge, "1 for the phase the job is in, 0 for the others.", {kJobPhase});
  add("spec_replicas", MetricType::kGauge, "Workers asked for.");
  add("status_replicas", MetricType::kGauge, "Workers by state.", {kReplicaState});
  add("status_restarts", MetricType::kGauge, "Restarts since the job was created.");
  add("status_restarts_counted", MetricType::kGauge, "Restarts that count towards spec.restart.maxRestarts.");
  add("created_timestamp_seconds", MetricType::kGauge, "Unix time of creation.");
  add("start_timestamp_seconds", MetricType::kGauge, "Unix time at which the job was first started.");
  add("completion_timestamp_seconds", MetricType::kGauge, "Unix time at which the job ended.");
  add("progress_ratio", MetricType::kGauge, "Committed steps / planned steps.");
  add("step", MetricType::kGauge, "Steps committed since the job began.");
  add("target_steps", MetricType::kGauge, "Steps planned.");
  add("imbalance_ratio", MetricType::kGauge, "max/mean - 1 over the ranks; 0 = balanced.",
      {{"dimension", {"busy_time"}}});
  add("idle_ratio", MetricType::kGauge, "1 - mean/max over the ranks: share of the slowest rank's time that a rank idles.",
      {{"dimension", {"busy_time"}}});
  add("rebalances", MetricType::kGauge, "Times that the ranks' shares were changed, taking back included.");
  add("remedy_gain_ratio", MetricType::kGauge,
      "Gain in samples per second of the best that was done of its kind: as predicted, and as measured after it.",
      {kAction, {"kind", {"predicted", "measured"}}});
  add("replica_relative_performance_ratio", MetricType::kGauge,
      "Speed of a rank / reference speed of the job; 1 = as fast as the reference.", {kRank});
  add("stragglers", MetricType::kGauge,
      "Ranks whose relative performance is below spec.balance.stragglerThreshold.");
  add("samples_per_second", MetricType::kGauge, "Training samples per second over all ranks.");
  add("step_time_share_ratio", MetricType::kGauge, "Where a step's time goes; signed, adds up to 1.",
      {kPart});
  add("diagnosis", MetricType::kGauge, "1 for the verdict in force, 0 for the others.", {kVerdict});
  add("productive_seconds_total", MetricType::kCounter, "Time that became kept training progress.");
  add("unproductive_seconds_total", MetricType::kCounter, "Time that did not, by cause.", {kCause});
}

void add_operator(std::vector<MetricInfo>& out) {
  auto add = [&out](std::string name, MetricType type, std::string help, Labels labels = {},
                    std::vector<double> buckets = {}) {
    out.push_back({std::move(name), type, std::move(help), std::move(labels), std::move(buckets),
                   MetricSource::kOperator});
  };
  add("evenkeel_operator_build_info", MetricType::kGauge, "Constant 1; what this operator is.",
      {{"version", {}}, {"commit", {}}, {"compiler", {}}});
  add("evenkeel_operator_jobs_finished_total", MetricType::kCounter, "Jobs that ended, by result.",
      {kNamespace, {"result", {"succeeded", "failed", "deleted"}}});
  add("evenkeel_operator_watch_events_total", MetricType::kCounter, "Watch events received.",
      {kResource, {"type", {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"}}});
  add("evenkeel_operator_watch_restarts_total", MetricType::kCounter, "Watches opened again.",
      {kResource, {"reason", {"expired", "closed", "error"}}});
  add("evenkeel_operator_watch_last_event_timestamp_seconds", MetricType::kGauge,
      "Unix time of the last event, bookmark or opening of the watch.", {kResource});
  add("evenkeel_operator_cache_objects", MetricType::kGauge, "Objects in the cache.", {kResource});
  add("controller_runtime_reconcile_total", MetricType::kCounter, "Reconciles by result.",
      {kController, {"result", {"success", "error", "requeue", "requeue_after"}}});
  add("controller_runtime_reconcile_errors_total", MetricType::kCounter, "Reconciles that failed.",
      {kController});
  add("controller_runtime_terminal_reconcile_errors_total", MetricType::kCounter,
      "Reconciles that failed for good.", {kController});
  add("controller_runtime_reconcile_panics_total", MetricType::kCounter,
      "Reconciles that ended in an exception.", {kController});
  add("controller_runtime_reconcile_timeouts_total", MetricType::kCounter,
      "Reconciles that took longer than allowed.", {kController});
  add("controller_runtime_reconcile_time_seconds", MetricType::kHistogram, "Time of a reconcile.",
      {kController}, {0.005, 0.01, 0.025, 0.05, 0.1,  0.15, 0.2,  0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6,
                      0.7,   0.8,  0.9,   1.0,  1.25, 1.5,  1.75, 2.0,  2.5, 3.0,  3.5, 4.0,  4.5, 5,
                      6,     7,    8,     9,    10,   15,   20,   25,   30,  40,   50,  60});
  add("controller_runtime_max_concurrent_reconciles", MetricType::kGauge, "Workers of the controller.",
      {kController});
  add("controller_runtime_active_workers", MetricType::kGauge, "Workers that run a reconcile now.",
      {kController});
  add("workqueue_depth", MetricType::kGauge, "Keys waiting.", {kController, kQueue, {"priority", {"0"}}});
  add("workqueue_adds_total", MetricType::kCounter, "Keys added.", {kController, kQueue});
  add("workqueue_queue_duration_seconds", MetricType::kHistogram, "Time a key waits.", {kController, kQueue},
      geometric(1e-8, 10, 12));
  add("workqueue_work_duration_seconds", MetricType::kHistogram, "Time a key is worked on.",
      {kController, kQueue}, geometric(1e-8, 10, 12));
  add("workqueue_unfinished_work_seconds", MetricType::kGauge, "Seconds of work in progress.",
      {kController, kQueue});
  add("workqueue_longest_running_processor_seconds", MetricType::kGauge,
      "Age of the oldest work in progress.", {kController, kQueue});
  add("workqueue_retries_total", MetricType::kCounter, "Keys added again after an error.",
      {kController, kQueue});
  // Buckets of client-go.
  const std::vector<double> latency{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};
  const std::vector<double> sizes{64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216};
  add("rest_client_request_retries_total", MetricType::kCounter, "Requests sent again.",
      {{"code", {}}, {"verb", {}}, {"host", {}}});
  add("rest_client_request_duration_seconds", MetricType::kHistogram, "Time of a request.",
      {{"verb", {}}, {"host", {}}}, latency);
  add("rest_client_rate_limiter_duration_seconds", MetricType::kHistogram,
      "Time a request waits for the client's own limit.", {{"verb", {}}, {"host", {}}}, latency);
  add("rest_client_request_size_bytes", MetricType::kHistogram, "Size of a request's body.",
      {{"verb", {}}, {"host", {}}}, sizes);
  add("rest_client_response_size_bytes", MetricType::kHistogram, "Size of an answer's body.",
      {{"verb", {}}, {"host", {}}}, sizes);
  add("evenkeel_operator_pod_operations_total", MetricType::kCounter, "Pods made and deleted.",
      {{"operation", {"create", "delete"}}, {"result", {"success", "error"}}});
  add("rest_client_requests_total", MetricType::kCounter, "Requests to the API server by code and method.",
      {{"code", {}}, {"method", {}}, {"host", {}}});
}

std::vector<MetricInfo> make_catalogue() {
  std::vector<MetricInfo> out;
  add_replica(out);
  add_coordinator(out);
  add_operator_state(out);
  add_operator(out);
  return out;
}

}  // namespace

const std::vector<MetricInfo>& metric_catalogue() {
  static const std::vector<MetricInfo> catalogue = make_catalogue();
  return catalogue;
}

const MetricInfo& metric_info(const std::string& name) {
  const auto& all = metric_catalogue();
  const auto at =
      std::find_if(all.begin(), all.end(), [&name](const MetricInfo& info) { return info.name == name; });
  assert(at != all.end() && "metric is not in contract/metrics.cpp");
  return *at;
}

std::string metrics_markdown() {
  static constexpr const char* kTypes[] = {"counter", "gauge", "histogram"};
  static constexpr std::pair<MetricSource, const char*> kSections[] = {
      {MetricSource::kReplica, "Trainer, per rank"},
      {MetricSource::kCoordinator, "Job, from the coordinator"},
      {MetricSource::kOperatorState, "Job, from the operator"},
      {MetricSource::kOperator, "Operator"}};
  std::string out = "<!-- Generated by `evenkeel-operator metrics`; do not edit. -->\n# Metrics\n";
  for (const auto& [source, title] : kSections) {
    out += "\n## " + std::string(title) + "\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n";
    for (const MetricInfo& info : metric_catalogue()) {
      if (info.source != source) continue;
      std::string labels;
      for (const LabelInfo& label : info.labels) {
        labels += (labels.empty() ? "" : "; ") + label.name;
        for (std::size_t i = 0; i < label.values.size(); ++i)
          labels += (i == 0 ? ": " : ", ") + label.values[i];
      }
      out += "| `" + info.name + "` | " + kTypes[static_cast<int>(info.type)] + " | " + labels + " | " +
             info.help + " |\n";
    }
  }
  return out;
}

}  // namespace evenkeel::contract
