// Bytes of a file at rising offsets through one buffer, for building an index: one call of the system for
// many small records, none for the inside of large ones. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/result.h"

namespace evenkeel::trainer {

class FileWindow {
 public:
  // `size`: of the file.
  FileWindow(base::Files& files, std::string path, std::uint64_t size)
      : files_(&files), path_(std::move(path)), size_(size) {}

  // Of a file whose whole content is in memory already.
  explicit FileWindow(std::string content) : files_(nullptr), size_(content.size()), buffer_(std::move(content)) {}

  // `count` bytes at `offset`; what is read with them on the way comes from the buffer later. Valid until the
  // next call. REQUIRES: offset + count <= size.
  base::Result<std::string_view> view(std::uint64_t offset, std::size_t count);
  std::uint64_t size() const { return size_; }

 private:
  base::Files* files_;
  std::string path_;
  std::uint64_t size_;
  std::uint64_t start_ = 0;
  std::string buffer_;
};

}  // namespace evenkeel::trainer
