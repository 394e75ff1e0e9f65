// One attempt of a local job: its processes from start to end. Called by run_local.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/signals.h"
#include "base/subprocess.h"
#include "contract/report.h"
#include "contract/trainer_config.h"
#include "trainer/local/cpu_cgroups.h"

namespace evenkeel::trainer {

struct AttemptOptions {
  std::string program;
  std::string directory;  // for configuration, key, logs
  std::string node_name;
  contract::TrainerConfig config;
  std::optional<int> metrics_port_base;
  std::map<int, std::string> cgroup_procs;  // by worker: where to enter before the trainer starts
  bool trace = false;                       // the processes write their parts of a trace: trace_parts()
  std::string inject;                       // slowness on purpose, as written
  std::int64_t micro_batch = 0;             // samples a rank computes at once; 0: its own choice
  const base::StopSignal* stop = nullptr;
  std::function<void(const contract::JobReport&)> on_report;
  // A process was lost and another one takes its place; a sentence.
  std::function<void(const std::string&)> on_replaced;
  int restarts_before = 0;  // incidents of earlier attempts, that count towards restart.maxRestarts
};

struct AttemptEnd {
  int exit_code = 70;
  int culprit = -1;  // rank, or -1
  std::string reason;
  bool gave_up = false;        // restart.maxRestarts is reached, or nothing can be started: no further attempt
  int restarts = 0;            // incidents in which processes were replaced while the others went on
  contract::JobReport report;  // the last one
  std::string report_error;    // not empty: the coordinator left none that can be read, `report` is the last
                               // that was polled
};

// Where the workers of an attempt leave their parts.
std::vector<std::string> trace_parts(const AttemptOptions& options);

// Before another try after `restarts` earlier ones: none at first, then 1, 2, 4 .. 300 s.
double restart_pause_seconds(int restarts);

// Blocks until all of the attempt's processes have ended. Errors: they could not be started.
base::Result<AttemptEnd> run_attempt(const AttemptOptions& options);

}  // namespace evenkeel::trainer
