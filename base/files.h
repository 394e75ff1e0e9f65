// The file system as an interface, with a fake that fails on demand (files_fake.h). Real one: real_files().
// Thread safe. Every message names the path and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace evenkeel::base {

struct DirEntry {
  std::string name;
  bool is_directory = false;
};

class Files {
 public:
  virtual ~Files() = default;
  // Whole file; longer than max_bytes: kInvalidInput with both numbers.
  virtual Result<std::string> read(const std::string& path, std::size_t max_bytes) = 0;
  // Part of a file; shorter than asked: kCorruptData, "truncated" with the offset.
  virtual Result<std::string> read_range(const std::string& path, std::uint64_t offset,
                                         std::size_t bytes) = 0;
  virtual Result<std::uint64_t> size(const std::string& path) = 0;
  virtual bool exists(const std::string& path) = 0;
  // Sorted by name. kNotFound where there is none.
  virtual Result<std::vector<DirEntry>> list(const std::string& directory) = 0;

  // Create or truncate, write all pieces, fsync, close.
  virtual Status write_synced(const std::string& path, std::span<const std::string_view> pieces) = 0;
  virtual Status make_directories(const std::string& path) = 0;
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status sync_directory(const std::string& path) = 0;
  virtual Status remove_all(const std::string& path) = 0;
};

Files& real_files();

// Readers see the old content or the new one, never a half: temporary name, fsync, rename, fsync of the
// folder.
Status write_atomic(Files& files, const std::string& path, std::string_view content);

}  // namespace evenkeel::base
