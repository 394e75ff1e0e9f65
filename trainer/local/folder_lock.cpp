#include "trainer/local/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.h"

namespace evenkeel::trainer {

base::Result<FolderLock> FolderLock::take(const std::string& folder) {
  (void)base::real_files().make_directories(folder);
  FolderLock lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.fd_ >= 0 && ::flock(lock.fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return base::Error{base::ErrorCode::kAlreadyExists,
                       "another run keeps its checkpoints in " + folder +
                           ": wait until it has ended, or name another folder with --checkpoint-dir"};
  }
  return lock;
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace evenkeel::trainer
