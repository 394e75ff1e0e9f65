// For tests: files of a process that dies. The n-th call never comes back to the process, nor does any after
// it; what the calls before it did stays done (unlike after FakeFiles::crash_at_mutation, where what was not
// synced is lost). A killed write leaves half of its bytes. Thread safe.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/files.h"

namespace evenkeel::trainer {

class KilledFiles : public base::Files {
 public:
  // dies_at: counted from 1; 0: never.
  KilledFiles(base::Files& files, int dies_at) : files_(files), dies_at_(dies_at) {}
  int calls() const { return calls_; }

  base::Result<std::string> read(const std::string& path, std::size_t max_bytes) override {
    if (dies()) return dead();
    return files_.read(path, max_bytes);
  }
  base::Result<std::string> read_range(const std::string& path, std::uint64_t offset,
                                       std::size_t bytes) override {
    if (dies()) return dead();
    return files_.read_range(path, offset, bytes);
  }
  base::Result<std::uint64_t> size(const std::string& path) override {
    if (dies()) return dead();
    return files_.size(path);
  }
  bool exists(const std::string& path) override { return !dies() && files_.exists(path); }
  base::Result<std::vector<base::DirEntry>> list(const std::string& directory) override {
    if (dies()) return dead();
    return files_.list(directory);
  }
  base::Status write_synced(const std::string& path, std::span<const std::string_view> pieces) override {
    const bool was_dead = dead_;
    if (!dies()) return files_.write_synced(path, pieces);
    if (was_dead) return dead();
    std::string half;
    for (const std::string_view piece : pieces) half += piece;
    half.resize(half.size() / 2);
    const std::string_view all[] = {half};
    [[maybe_unused]] const base::Status ignored = files_.write_synced(path, all);
    return dead();
  }
  base::Status make_directories(const std::string& path) override {
    if (dies()) return dead();
    return files_.make_directories(path);
  }
  base::Status rename(const std::string& from, const std::string& to) override {
    if (dies()) return dead();
    return files_.rename(from, to);
  }
  base::Status sync_directory(const std::string& path) override {
    if (dies()) return dead();
    return files_.sync_directory(path);
  }
  base::Status remove_all(const std::string& path) override {
    if (dies()) return dead();
    return files_.remove_all(path);
  }

 private:
  bool dies() {
    if (++calls_ == dies_at_) dead_ = true;
    return dead_;
  }
  static base::Error dead() { return {base::ErrorCode::kIo, "the process was killed"}; }

  base::Files& files_;
  const int dies_at_;
  std::atomic<int> calls_{0};
  std::atomic<bool> dead_{false};
};

}  // namespace evenkeel::trainer
