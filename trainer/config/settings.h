// What one trainer process is told: the job's configuration file and the variables of contract/env.h, checked
// together. Read once at start by worker and coordinator; a plain value afterwards.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/files.h"
#include "base/result.h"
#include "contract/job/names.h"
#include "contract/trainer_config.h"

namespace evenkeel::trainer {

struct Settings {
  contract::TrainerConfig config;
  std::string key;  // the job's secret, raw bytes
  contract::Role role = contract::Role::kWorker;
  int rank = 0;
  std::int64_t incarnation = 1;  // of the pod
  std::int64_t restarts = 0;     // of this rank in its pod
  std::string pod_name;
  std::string pod_uid;
  std::string node_name;
  std::string bind_address;  // the pod's own address; the only one that is bound
  int metrics_port = 0;
  std::string metrics_file;  // not empty: pages on the loopback interface, their port written into this file
  int data_port = 0;  // 0: any free one
  std::string termination_log;
  std::string wanted_file;       // coordinator of a scalable job; empty: its size is fixed
  std::string trace;             // file for this process's part of a trace; empty: none
  std::string inject;            // slowness on purpose (trainer/loop/injection.h); empty: none
  bool shared_memory = true;     // between ranks of one machine, where it is possible
  std::int64_t micro_batch = 0;  // samples computed at once; 0: what fits into memory

  int ranks_in_pod() const { return config.spec.workers.devices_per_replica; }
  // Of this process: above those of all earlier processes of the rank, in this pod and in the pods before it.
  std::int64_t process_incarnation() const { return incarnation * (kMaxRestartsInPod + 1) + restarts; }
  static constexpr std::int64_t kMaxRestartsInPod = 1023;
};

// Looks a variable up; unset: nullopt. The process environment in main, a map in tests.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
Environment process_environment();

// kInvalidInput naming the variable or member; kIo where the file cannot be read.
base::Result<Settings> read_settings(const Environment& environment, base::Files& files);

}  // namespace evenkeel::trainer
