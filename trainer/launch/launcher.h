// The ranks of one pod as processes: started, started again in place, asked to stop, and answered for: the pod's
// /metrics, /healthz and /readyz, its exit code and its termination message are the launcher's. It may be process 1
// of a container. Called by trainer/app from the main thread; blocks until all ranks have ended. Ranks never outlive
// it: the kernel ends them with the thread that started them.
#pragma once

#include <string>

#include "base/signals.h"
#include "trainer/config/settings.h"

namespace evenkeel::trainer {

struct LauncherOptions {
  std::string program;                     // this program's own file; a rank runs it as `worker`
  Environment environment;                 // of the pod
  const base::StopSignal* stop = nullptr;  // SIGTERM: handed on, all ranks make a checkpoint; may be null
};

// The pod's exit code: the worst of its ranks (contract/worst_exit.h). `settings` are the pod's: its rank is the first
// of the pod's ranks.
int run_launcher(const Settings& settings, const LauncherOptions& options);

}  // namespace evenkeel::trainer
