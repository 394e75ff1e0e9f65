// The coordinator's report on its job: GET /v1/report on the coordinator's metrics port while it runs, and
// the pod's termination message at its end. Writer: trainer/coordinator. Readers: operator/act,
// trainer/local, cli. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace evenkeel::contract {

using base::Json;

inline constexpr char kReportPath[] = "/v1/report";
inline constexpr std::size_t kMaxReportBytes = 256u << 10;
inline constexpr std::size_t kMaxTerminationMessageBytes = 4096;

enum class JobStage { kRendezvous, kRunning, kStopping, kCompleted, kStopped, kFailed };
const char* stage_name(JobStage stage);

struct Progress {
  std::int64_t epoch = 0;  // epochs completed
  std::int64_t step = 0;   // committed steps since the job began
  std::int64_t target_steps = 0;
  std::int64_t samples = 0;    // committed since the job began
  std::optional<double> loss;  // mean over the last window of training steps
  std::optional<double> eval_loss;
  std::optional<double> accuracy;  // of the last evaluation, 0..1
  std::optional<double> samples_per_second;
  std::optional<double> eta_seconds;
  std::int64_t skipped = 0;  // records that could not be read and were skipped, since the job began
};

struct ReplicaReport {
  int rank = 0;
  std::string pod;
  std::string node;
  std::string state;  // joined | ready | stepping | done | lost
  std::optional<double> samples_per_second;
  std::optional<double> busy_seconds;  // mean own work a step, in the window
  std::optional<double> share;         // of the global batch, 0..1
  std::optional<double> relative_performance;
  std::int64_t shard_samples = 0;  // of this epoch
  std::int64_t consumed = 0;       // training samples since the job began
  int threads = 0;
  double cpu_limit = 0;  // cores; 0 = none
};

// Shares of the step time; with compute they add up to 1 (diagnosis.md 2). fixedCost absent: no baseline.
struct Losses {
  std::optional<double> compute, fixed_cost, input_wait, imbalance, communication;
};

enum class RemedyState { kProposed, kApplied, kReverted, kNotAllowed };
const char* remedy_state_name(RemedyState state);

struct Remedy {
  std::string action;         // "batch x4: 64 -> 256 samples a step, learning rate by its rule"
  double predicted_gain = 0;  // in samples/s: 0.1 is 10 percent
  std::optional<double> measured_gain;
  RemedyState state = RemedyState::kProposed;
  // In steps to the same loss, where the batch changes and the noise scale is known: what is gained in the
  // end.
  std::optional<double> predicted_loss_gain;
};

struct Diagnosis {
  std::string verdict = "Measuring";  // Measuring | ScalingFine | Straggler | ...
  std::string message;
  Losses losses;
  std::vector<Remedy> remedies = {};  // best first
};

struct Balance {
  std::optional<double> imbalance_ratio;
  std::optional<int> slowest_rank;
  std::optional<double> scaling_efficiency;
  std::int64_t rebalances = 0;
  std::string mode;                 // Off | Observe | Rebalance
  std::optional<bool> balanced;     // absent: not known yet
  std::string reason;               // why it is not
  std::optional<double> loss_left;  // of the step's time, with the best shares that are possible
};

// From N ranks to the speed that they reach: the terms of a mean step (diagnosis.md 2).
struct WaterfallTerm {
  std::string name;             // useful | fixed | usefulAndFixed | capacity | wait | input | rest
  double seconds = 0;           // of a mean step; signed
  std::optional<double> ranks;  // what it costs, as a number of ranks; absent without a baseline
};
struct WaterfallReport {
  int ranks = 0;
  double step_seconds = 0;
  std::optional<double> speedup;  // S: speedup and the ranks of the terms add up to `ranks`
  std::vector<WaterfallTerm> terms;
  std::optional<double> residue_seconds;  // seen by the coordinator's clock and by no timer
  std::string baseline = "none";          // none | measured | fitted
};

// What each rank did over time, for pictures: means over `steps` steps that end with `step`.
struct HistoryRank {
  int rank = 0;
  double samples = 0, compute_seconds = 0, input_seconds = 0;
};
struct HistoryPoint {
  std::int64_t step = 0;
  std::int64_t steps = 1;
  double step_seconds = 0;
  std::vector<HistoryRank> ranks;  // those that took part
};
inline constexpr std::size_t kMaxHistoryPoints = 120;
inline constexpr std::size_t kMaxHistoryEntries = 2000;  // points times ranks: what fits into a report

struct LastFailure {
  int rank = -1;
  int exit_code = 0;
  std::string reason;
};

struct JobReport {
  std::string job_uid;
  std::uint32_t attempt = 0;
  std::uint32_t coordinator_incarnation = 0;
  std::uint32_t generation = 0;
  JobStage stage = JobStage::kRendezvous;
  int ranks = 0;
  int joined = 0;
  Progress progress;
  Balance balance;
  Diagnosis diagnosis;
  std::optional<WaterfallReport> waterfall;          // absent: no window yet
  std::vector<HistoryPoint> history;                 // oldest first; empty in a job of very many ranks
  std::vector<ReplicaReport> replicas;               // by rank
  std::int64_t checkpoint_step = 0;                  // 0: none yet
  std::string sharding = {};                           // "Record, as ...": which and why; empty: not known yet
  std::map<std::string, double> productive_seconds;  // "productive" and the causes of status.time
  std::optional<LastFailure> failure;
  std::string message;  // what it waits for, or why it ended
};

Json to_json(const JobReport& report);
base::Result<JobReport> decode_report(const Json& json);
// The report as a termination message of at most kMaxTerminationMessageBytes: first the history goes, then
// messages are cut, then the waterfall and all remedies but the best go, then replicas from the middle; never
// progress or failure.
std::string termination_message(const JobReport& report);

// What a worker leaves as its termination message: {"reason": ..., "exitCode": ..., "step": ...}.
struct WorkerTermination {
  std::string reason;
  int exit_code = 0;
  std::int64_t step = 0;
};
std::string termination_message(const WorkerTermination& termination);
// Users may run anything in a pod: any text is accepted, an unreadable one becomes the reason, cut to 1 KiB
// of valid UTF-8.
WorkerTermination parse_worker_termination(const std::string& text);

}  // namespace evenkeel::contract
