// status of a TrainingJob as a value: what the last decision left behind, and all that the next one may
// remember. Read and written by every policy of this folder; the decoder takes whatever it finds. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/time_text.h"
#include "operator/reconcile/conditions.h"

namespace evenkeel::oper {

using base::Json;
using base::WallTimeValue;

// kNone: never reconciled. Pending: no pod of the attempt runs. Starting: some do. Running: all ranks have
// joined. Restarting: an incident is open, until all ranks have joined again. Suspended: no children but the
// key, or on the way there. Succeeded and Failed never change again.
enum class Phase { kNone, kPending, kStarting, kRunning, kRestarting, kSuspended, kSucceeded, kFailed };
const char* phase_name(Phase phase);
bool is_terminal(Phase phase);

struct Restarts {
  std::int64_t total = 0;
  std::int64_t counted = 0;          // towards maxRestarts
  std::vector<std::string> handled;  // UIDs of the pods of the last incidents
  std::optional<WallTimeValue> next_retry_time;
};

// A pod that runs and that the coordinator has lost: since when.
struct LostPod {
  std::string pod;  // as in PodBook
  WallTimeValue since{};
};

// Scope Worker: which pods an attempt has had, so that a pod that is not there is either still to be made or
// was taken away, whatever crashed in between. An entry of the lists is "<role>-<rank>-<incarnation>".
struct PodBook {
  int wanted = 0;                // workers; follows spec.workers.replicas
  int made = 0;                  // workers of rank 0..made-1 have had their pod; any: the coordinator too
  std::int64_t incarnation = 0;  // of the pods of the ranks from `made` on
  std::vector<std::string> replacing;  // of the open incident, to be made
  std::vector<std::string> replaced;   // of the open incident, made
  std::vector<LostPod> lost;
};

// desired: 0 while suspended or finished. replicas: as the spec has it, for "3/4".
struct WorkerCounts {
  int desired = 0, pending = 0, running = 0, ready = 0, succeeded = 0, failed = 0, terminating = 0,
      replicas = 0;
};

struct JobStatus {
  Phase phase = Phase::kNone;
  std::int64_t observed_generation = 0;
  std::int64_t attempt = 0;
  std::int64_t incarnation = 0;
  Restarts restarts;
  std::optional<PodBook> pods;  // scope Worker, from the start of an attempt to its end
  std::optional<WallTimeValue>
      start_time;  // first reconciled; never changes (time_accounting.h counts from it)
  std::optional<WallTimeValue> completion_time;
  std::optional<WorkerCounts> workers;
  std::string selector;
  Conditions conditions;
  // Only shown, never asked: as JSON, written by progress.cpp, time_accounting.cpp and failure.cpp.
  Json progress, time, balance, diagnosis, replicas, last_failure;
};

JobStatus decode_status(const Json& status);
Json to_json(const JobStatus& status);

std::optional<WallTimeValue> time_at(const Json& object, std::string_view key);

}  // namespace evenkeel::oper
