// The worker's log lines that are made of many figures. Called by the worker.
#pragma once

#include <cstdint>

#include "base/files.h"
#include "contract/messages.h"
#include "trainer/collectives/tcp/tcp_ring.h"
#include "trainer/loop/cgroup.h"

namespace evenkeel::trainer {

// The first step, the last one, and some between.
void log_step(const contract::StepPlan& plan, const contract::Commit& commit, std::int64_t target_steps);
// How the ring goes to the neighbours: shared memory, or why not. One rank has none.
void log_paths(const TcpRing& ring);
// Periods of the CPU quota so far; nothing where there is none.
void log_throttling(base::Files& files, const CpuLimit& cpu);

}  // namespace evenkeel::trainer
