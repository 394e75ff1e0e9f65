// One run at a time in a checkpoint folder: two that write there delete each other's checkpoints. Held by
// `local` for its whole run and given back by the system however it ends. Of this machine's processes only.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace evenkeel::trainer {

class FolderLock {
 public:
  // Makes the folder where there is none. kAlreadyExists while another process holds it; a file system without
  // locks, or a folder that cannot be made, is no error here: whoever writes there will say so.
  static base::Result<FolderLock> take(const std::string& folder);
  FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace evenkeel::trainer
