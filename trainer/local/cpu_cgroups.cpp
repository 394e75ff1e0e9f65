#include "trainer/local/cpu_cgroups.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <system_error>
#include <vector>

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Status;

constexpr std::int64_t kPeriodUs = 100000;  // the kernel's default, and Kubernetes'
constexpr std::int64_t kMinQuotaUs = 1000;  // the kernel's floor
constexpr char kPrefix[] = "evenkeel-local-";

std::string reason() {
  return std::generic_category().message(errno);
}

// The kernel's control files want one write, and know no fsync.
Status write_control(const std::string& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return Error{ErrorCode::kPermissionDenied, path + ": " + reason()};
  const bool ok = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const std::string why = reason();
  ::close(fd);
  if (!ok) return Error{ErrorCode::kPermissionDenied, "writing " + text + " to " + path + ": " + why};
  return {};
}

std::string read_control(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  std::array<char, 4096> text;
  const ssize_t got = ::read(fd, text.data(), text.size());
  ::close(fd);
  return got > 0 ? std::string(text.data(), static_cast<std::size_t>(got)) : "";
}

bool exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

Status make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return {};
  return Error{ErrorCode::kPermissionDenied, "cannot make " + path + ": " + reason()};
}

std::vector<std::string> folders_in(const std::string& path) {
  std::vector<std::string> names;
  DIR* directory = ::opendir(path.c_str());
  if (directory == nullptr) return names;
  while (const dirent* entry = ::readdir(directory)) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  ::closedir(directory);
  return names;
}

// A run that was killed could not clean up. Its children died with it, so that its folders are empty.
void remove_left_behind(const std::string& parent) {
  for (const std::string& name : folders_in(parent)) {
    if (name.rfind(kPrefix, 0) != 0) continue;
    const int pid = std::atoi(name.c_str() + sizeof kPrefix - 1);
    if (pid <= 0 || ::kill(pid, 0) == 0 || errno != ESRCH) continue;
    for (const std::string& rank : folders_in(parent + "/" + name))
      ::rmdir((parent + "/" + name + "/" + rank).c_str());
    ::rmdir((parent + "/" + name).c_str());
  }
}

// "nr_periods 12\nnr_throttled 3\n..." -> the number behind `name`.
std::uint64_t stat_value(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  std::string key;
  std::uint64_t value = 0;
  while (lines >> key >> value) {
    if (key == name) return value;
  }
  return 0;
}

}  // namespace

base::Result<std::unique_ptr<CpuCgroups>> CpuCgroups::make(const std::string& root) {
  const std::string run_name = kPrefix + std::to_string(::getpid());
  for (const char* controller : {"/cpu", "/cpu,cpuacct", "/cpuacct,cpu"}) {
    const std::string folder = root + controller;
    if (!exists(folder + "/cpu.cfs_period_us")) continue;
    remove_left_behind(folder);
    EVENKEEL_TRY(make_folder(folder + "/" + run_name));
    return std::unique_ptr<CpuCgroups>(new CpuCgroups(Version::kOne, folder + "/" + run_name));
  }
  if (exists(root + "/cgroup.controllers")) {
    EVENKEEL_TRY(write_control(root + "/cgroup.subtree_control", "+cpu"));
    remove_left_behind(root);
    const std::string folder = root + "/" + run_name;
    EVENKEEL_TRY(make_folder(folder));
    std::unique_ptr<CpuCgroups> groups(new CpuCgroups(Version::kTwo, folder));
    EVENKEEL_TRY(write_control(folder + "/cgroup.subtree_control", "+cpu"));
    return groups;
  }
  return Error{ErrorCode::kUnsupported, "no CPU cgroup below " + root};
}

base::Result<std::string> CpuCgroups::limit(int rank, double cores) {
  const std::string folder = folder_of(rank);
  EVENKEEL_TRY(make_folder(folder));
  const std::int64_t quota =
      std::max(kMinQuotaUs, static_cast<std::int64_t>(std::llround(cores * static_cast<double>(kPeriodUs))));
  if (version_ == Version::kTwo) {
    EVENKEEL_TRY(write_control(folder + "/cpu.max", std::to_string(quota) + " " + std::to_string(kPeriodUs)));
  } else {
    EVENKEEL_TRY(write_control(folder + "/cpu.cfs_period_us", std::to_string(kPeriodUs)));
    EVENKEEL_TRY(write_control(folder + "/cpu.cfs_quota_us", std::to_string(quota)));
  }
  limits_[rank] = cores;
  return folder + "/cgroup.procs";
}

std::optional<CpuUse> CpuCgroups::read(int rank) const {
  const auto limit = limits_.find(rank);
  if (limit == limits_.end()) return std::nullopt;
  const std::string folder = folder_of(rank);
  const std::string stat = read_control(folder + "/cpu.stat");
  CpuUse use;
  if (version_ == Version::kTwo) {
    std::istringstream max(read_control(folder + "/cpu.max"));
    double quota = 0, period = 0;
    if (max >> quota >> period && period > 0) use.limit_cores = quota / period;
    use.throttled_seconds = static_cast<double>(stat_value(stat, "throttled_usec")) / 1e6;
  } else {
    const double period = std::atof(read_control(folder + "/cpu.cfs_period_us").c_str());
    if (period > 0) use.limit_cores = std::atof(read_control(folder + "/cpu.cfs_quota_us").c_str()) / period;
    use.throttled_seconds = static_cast<double>(stat_value(stat, "throttled_time")) / 1e9;
  }
  use.periods = stat_value(stat, "nr_periods");
  use.throttled_periods = stat_value(stat, "nr_throttled");
  use.source = folder;
  return use;
}

// Empty by now: its processes have ended. A folder that another process entered stays, and is named by
// rmdir's failure to nobody: there is nothing to do about it here.
CpuCgroups::~CpuCgroups() {
  for (const auto& [rank, cores] : limits_) ::rmdir(folder_of(rank).c_str());
  ::rmdir(folder_.c_str());
}

}  // namespace evenkeel::trainer
