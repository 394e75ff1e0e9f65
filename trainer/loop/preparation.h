// What a rank gets ready before it joins: threads and memory by the limits of its pod, data set, model,
// checkpoints; and how it introduces itself to the coordinator with that. Called by the worker, on its loop's
// thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/files.h"
#include "contract/messages.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/config/settings.h"
#include "trainer/loop/cgroup.h"
#include "trainer/loop/replica.h"

namespace evenkeel::trainer {

struct Prepared {
  CpuLimit cpu;
  std::optional<CpuThrottling> throttled_at_start;
  ThreadChoice threads;
  int data_threads = 1;
  std::unique_ptr<Replica> replica;
  CheckpointSearch checkpoints;  // nothing found where the job keeps none
};

// Errors: the data set, the model or the memory are not as the job needs them; no checkpoint of several
// verifies; the folder for them cannot be made.
base::Result<Prepared> prepare(base::Files& files, const Settings& settings);

// `data_address`: where the previous rank of the ring connects to. The held position, if any, is the caller's
// to add.
contract::Join introduction(base::Files& files, const Settings& settings, const Prepared& prepared,
                            const std::string& data_address);

// Periods of the CPU quota since `at_start`; nothing where there is none.
void add_quota_periods(base::Files& files, const std::optional<CpuThrottling>& at_start,
                       contract::Heartbeat& beat);

}  // namespace evenkeel::trainer
