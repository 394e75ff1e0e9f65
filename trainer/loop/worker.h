// One rank as a program: data set and model, coordinator, ring, state, then step after step as planned, until
// the job ends. /metrics, /healthz and /readyz of the pod. Called by trainer/app and by tests; blocks until
// the end. Threads: the caller's runs the training; others serve HTTP, the coordinator's connection and the
// watch for aborts.
#pragma once

#include <functional>
#include <string>

#include "base/files.h"
#include "base/signals.h"
#include "contract/exit_codes.h"
#include "trainer/config/settings.h"

namespace evenkeel::trainer {

struct WorkerDependencies {
  base::Files* files = nullptr;          // real_files() in main
  const base::Waker* stop = nullptr;     // awake once SIGTERM has come; may be null
  std::function<bool()> stop_requested;  // the same as a flag; may be empty
};

// The process's exit code. Everything that went wrong is in the log and in the termination message.
contract::ExitCode run_worker(const Settings& settings, const WorkerDependencies& dependencies);

}  // namespace evenkeel::trainer
