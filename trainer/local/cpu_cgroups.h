// CPU limits for local workers by cgroups, version 1 or 2, where this process may make them (root). One
// folder for the run, one below it for each rank; all are removed with this object. Not thread safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"

namespace evenkeel::trainer {

struct CpuUse {
  double limit_cores = 0;
  std::uint64_t periods = 0;
  std::uint64_t throttled_periods = 0;
  double throttled_seconds = 0;
  std::string source;  // folder
};

class CpuCgroups {
 public:
  // `root`: "/sys/fs/cgroup". The run's folder is named after this process; folders of runs that were killed
  // are removed. kUnsupported or kPermissionDenied where limits cannot be set here.
  static base::Result<std::unique_ptr<CpuCgroups>> make(const std::string& root);
  ~CpuCgroups();
  CpuCgroups(const CpuCgroups&) = delete;
  CpuCgroups& operator=(const CpuCgroups&) = delete;

  // A folder with this limit; the file into which the worker writes its process id before it becomes the
  // trainer.
  base::Result<std::string> limit(int rank, double cores);
  // As the kernel has it now; absent: no limit was set for the rank.
  std::optional<CpuUse> read(int rank) const;

 private:
  enum class Version { kOne, kTwo };
  CpuCgroups(Version version, std::string folder) : version_(version), folder_(std::move(folder)) {}
  std::string folder_of(int rank) const { return folder_ + "/rank-" + std::to_string(rank); }

  Version version_;
  std::string folder_;
  std::map<int, double> limits_;
};

}  // namespace evenkeel::trainer
