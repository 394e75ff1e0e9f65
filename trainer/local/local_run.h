// `evenkeel-trainer local`: one job on this machine. Coordinator and workers are child processes of the same
// program, told what the operator would tell its pods; a lost one restarts the whole job, as in the cluster.
// Called by trainer/app. One thread; blocks until the end. Children and cgroups never outlive it.
#pragma once

#include <ostream>
#include <string>

#include "base/signals.h"
#include "trainer/local/local_options.h"

namespace evenkeel::trainer {

struct LocalEnvironment {
  std::string program;                     // what a child runs: this program's own file
  const base::StopSignal* stop = nullptr;  // SIGINT, SIGTERM: checkpoint and end with 143; may be null
  std::ostream* out = nullptr;             // for the person
  bool terminal = false;                   // out is a terminal: the table is redrawn in place
  std::string cgroup_root = "/sys/fs/cgroup";
};

// The exit code.
int run_local(const LocalOptions& options, const LocalEnvironment& environment);

}  // namespace evenkeel::trainer
