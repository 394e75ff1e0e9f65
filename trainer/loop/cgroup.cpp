#include "trainer/loop/cgroup.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <vector>

namespace evenkeel::trainer {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxCpuInfoBytes = std::size_t{4} << 20;  // of a machine with very many cores
// Version 1 writes "no limit" as a page-rounded 2^63 - 1.
constexpr std::uint64_t kNoMemoryLimit = std::uint64_t{1} << 60;

struct Controller {
  std::string mount;  // "/sys/fs/cgroup/cpu,cpuacct"
  std::string path;   // of this process, from the mount
  int version = 2;
};

std::string read_text(base::Files& files, const std::string& path, std::size_t most = kMaxFileBytes) {
  const auto text = files.read(path, most);
  return text.ok() ? *text : "";
}

// Lines of /proc/self/cgroup are "4:cpu,cpuacct:/docker/x" (version 1) and "0::/user.slice" (version 2).
std::vector<Controller> controllers(base::Files& files, const std::string& wanted) {
  std::vector<Controller> found;
  std::istringstream lines(read_text(files, "/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (names.empty()) {
      found.push_back({"/sys/fs/cgroup", path, 2});
      found.push_back({"/sys/fs/cgroup/unified", path, 2});
    } else if (("," + names + ",").find("," + wanted + ",") != std::string::npos) {
      found.push_back({"/sys/fs/cgroup/" + names, path, 1});
      if (names != wanted) found.push_back({"/sys/fs/cgroup/" + wanted, path, 1});
    }
  }
  return found;
}

// The process's own folder and all above it, down to the mount. In a container the path may be the host's,
// unknown here: then the mount itself is the container's cgroup.
std::vector<std::string> folders(const Controller& controller) {
  std::vector<std::string> all;
  std::string path = controller.path;
  while (!path.empty() && path != "/") {
    all.push_back(controller.mount + path);
    path.erase(path.find_last_of('/'));
  }
  all.push_back(controller.mount);
  return all;
}

std::optional<double> number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return std::nullopt;
  return value;
}

// Cores, or nothing where this folder sets no quota.
std::optional<double> quota_of(base::Files& files, const std::string& folder, int version) {
  std::string quota, period;
  if (version == 2) {
    std::istringstream line(read_text(files, folder + "/cpu.max"));
    line >> quota >> period;
  } else {
    quota = read_text(files, folder + "/cpu.cfs_quota_us");
    period = read_text(files, folder + "/cpu.cfs_period_us");
  }
  const auto q = number(quota);
  const auto p = number(period);
  if (!q || !p || *q <= 0 || *p <= 0) return std::nullopt;  // "max" and -1 mean none
  return *q / *p;
}

struct Quota {
  double cores = 0;
  std::string folder;
  int version = 2;
};

std::optional<Quota> tightest_quota(base::Files& files) {
  std::optional<Quota> tightest;
  for (const Controller& controller : controllers(files, "cpu")) {
    for (const std::string& folder : folders(controller)) {
      const auto cores = quota_of(files, folder, controller.version);
      if (cores && (!tightest || *cores < tightest->cores))
        tightest = Quota{*cores, folder, controller.version};
    }
  }
  return tightest;
}

// "NAME 12" among words.
std::uint64_t value_of(const std::string& text, const std::string& name) {
  std::istringstream words(text);
  std::uint64_t value = 0;
  for (std::string key; words >> key;) {
    if (key == name && words >> value) return value;
  }
  return 0;
}

// Of /proc/meminfo, in bytes; 0: not there.
std::uint64_t memory_line(base::Files& files, const std::string& name) {
  return value_of(read_text(files, "/proc/meminfo"), name) * 1024;
}

// use(path, bytes, controller, folder) for each folder that limits this process.
template <class Use>
void for_each_memory_limit(base::Files& files, const Use& use) {
  for (const Controller& controller : controllers(files, "memory")) {
    for (const std::string& folder : folders(controller)) {
      const std::string path = folder + (controller.version == 2 ? "/memory.max" : "/memory.limit_in_bytes");
      const auto bytes = number(read_text(files, path));
      if (!bytes || *bytes <= 0 || *bytes >= static_cast<double>(kNoMemoryLimit)) continue;
      use(path, static_cast<std::uint64_t>(*bytes), controller, folder);
    }
  }
}

}  // namespace

CpuLimit read_cpu_limit(base::Files& files) {
  const auto quota = tightest_quota(files);
  if (!quota) return {0, "machine"};
  return {quota->cores, "cgroup v" + std::to_string(quota->version) + " " + quota->folder};
}

std::optional<CpuThrottling> read_cpu_throttling(base::Files& files) {
  const auto quota = tightest_quota(files);
  if (!quota) return std::nullopt;
  CpuThrottling throttling;
  throttling.source = quota->folder + "/cpu.stat";
  std::istringstream words(read_text(files, throttling.source));
  std::uint64_t value = 0;
  for (std::string key; words >> key >> value;) {
    if (key == "nr_periods") throttling.periods = value;
    if (key == "nr_throttled") throttling.throttled = value;
  }
  return throttling;
}

MemoryLimit read_memory_limit(base::Files& files) {
  MemoryLimit limit;
  if (const std::uint64_t total = memory_line(files, "MemTotal:"); total > 0) limit = {total, "machine"};
  for_each_memory_limit(files, [&](const std::string& path, std::uint64_t value, const Controller&,
                                   const std::string&) {
    if (limit.bytes == 0 || value < limit.bytes) limit = {value, "cgroup " + path};
  });
  return limit;
}

// Pages of files that were read count as used, and are given back as soon as somebody needs them.
std::uint64_t read_free_memory(base::Files& files) {
  std::uint64_t free = memory_line(files, "MemAvailable:");
  for_each_memory_limit(files, [&](const std::string&, std::uint64_t limit, const Controller& controller,
                                   const std::string& folder) {
    const bool two = controller.version == 2;
    const auto used = number(read_text(files, folder + (two ? "/memory.current" : "/memory.usage_in_bytes")));
    if (!used) return;
    const std::uint64_t files_kept =
        value_of(read_text(files, folder + "/memory.stat"), two ? "inactive_file" : "total_inactive_file");
    const std::uint64_t taken =
        static_cast<std::uint64_t>(*used) - std::min(static_cast<std::uint64_t>(*used), files_kept);
    const std::uint64_t left = limit - std::min(limit, taken);
    if (free == 0 || left < free) free = left;
  });
  return free;
}

std::string read_cpu_model(base::Files& files) {
  std::istringstream lines(read_text(files, "/proc/cpuinfo", kMaxCpuInfoBytes));
  std::string arm;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) return value;
    // Arm names no model: who designed the core, and which one it is.
    if (line.starts_with("CPU implementer")) arm = "CPU implementer " + value;
    if (line.starts_with("CPU part") && !arm.empty()) return arm + " part " + value;
  }
  return "";
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

ThreadChoice choose_threads(const CpuLimit& limit, int cores, int sharers) {
  const bool by_quota = limit.cores > 0 && limit.cores < cores;
  const double available = by_quota ? limit.cores : cores;
  ThreadChoice choice;
  choice.threads = std::max(1, static_cast<int>(std::floor(available / std::max(1, sharers))));
  choice.source = by_quota ? limit.source : "machine: " + std::to_string(cores) + " cores";
  if (sharers > 1) choice.source += ", shared by " + std::to_string(sharers) + " workers";
  return choice;
}

}  // namespace evenkeel::trainer
