// What the machine gives this process: CPU time and memory from the cgroups it is in (versions 1 and 2,
// nested ones too), else from the machine. Read once at start and once at the end; a container sees its own
// limits this way, and never the host's core count. No thread rules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/files.h"

namespace evenkeel::trainer {

struct CpuLimit {
  double cores = 0;    // quota / period of the tightest cgroup; 0 = none
  std::string source;  // "cgroup v2 /sys/fs/cgroup/x/cpu.max" or "machine"
};

struct CpuThrottling {
  std::uint64_t periods = 0;    // nr_periods
  std::uint64_t throttled = 0;  // nr_throttled
  std::string source;
};

struct MemoryLimit {
  std::uint64_t bytes = 0;  // 0 = unknown
  std::string source;
};

CpuLimit read_cpu_limit(base::Files& files);
// Of the cgroup whose quota is the tightest; absent where there is no quota.
std::optional<CpuThrottling> read_cpu_throttling(base::Files& files);
MemoryLimit read_memory_limit(base::Files& files);

// Memory that this process may still take: of its limit, and of the machine. 0 = unknown.
std::uint64_t read_free_memory(base::Files& files);
// "AMD EPYC 7763 64-Core Processor"; empty = unknown.
std::string read_cpu_model(base::Files& files);

// How many cores this process may be scheduled on.
int usable_cores();

struct ThreadChoice {
  int threads = 1;
  std::string source;
};
// floor(min(quota, cores)), divided by `sharers` processes that share them (workers of one machine), at
// least 1.
ThreadChoice choose_threads(const CpuLimit& limit, int cores, int sharers);

}  // namespace evenkeel::trainer
