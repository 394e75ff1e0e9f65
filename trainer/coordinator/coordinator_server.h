// The coordinator as a program: control port, handshake, heartbeats and time around Coordination; /metrics,
// /healthz, /readyz and /v1/report; the termination message. Called by trainer/app, by trainer/local's child
// and by tests. run_coordinator blocks until the job has ended; one thread does all but HTTP.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/socket.h"
#include "contract/trainer_config.h"

namespace evenkeel::trainer {

struct CoordinatorOptions {
  contract::TrainerConfig config;
  std::string key;                 // raw bytes of the job's key
  std::string bind_address;        // the pod's; never 0.0.0.0
  std::uint16_t control_port = 0;  // 0: any free one
  std::uint16_t metrics_port = 0;
  std::string termination_log;        // file for the last report; empty: none
  const base::Waker* stop = nullptr;  // SIGTERM; may be null
  std::string wanted_file;            // number of worker pods that are wanted now; empty: the size is fixed
  // Once both ports listen.
  std::function<void(std::uint16_t control_port, std::uint16_t metrics_port)> on_listening;
};

// The process's exit code (contract/exit_codes.h).
int run_coordinator(const CoordinatorOptions& options);

}  // namespace evenkeel::trainer
