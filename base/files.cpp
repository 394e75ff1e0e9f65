#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

namespace evenkeel::base {
namespace {

ErrorCode code_of(int error) {
  switch (error) {
    case ENOENT:
      return ErrorCode::kNotFound;
    case EEXIST:
    case ENOTEMPTY:
      return ErrorCode::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::kPermissionDenied;
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG:
    case ELOOP:
    case EINVAL:
      return ErrorCode::kInvalidInput;
    default:
      return ErrorCode::kIo;
  }
}

Error failed(const char* doing, const std::string& path, int error) {
  return Error{code_of(error),
               std::string(doing) + " " + path + ": " + std::generic_category().message(error)};
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) {
    do {
      fd_ = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
    } while (fd_ < 0 && errno == EINTR);
    if (open() && (flags & O_NONBLOCK) != 0) (void)::fcntl(fd_, F_SETFL, 0);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }

  bool open() const { return fd_ >= 0; }
  int get() const { return fd_; }
  // A late write error of a network file system shows here and nowhere else.
  int close() { return fd_ < 0 ? 0 : ::close(std::exchange(fd_, -1)); }

 private:
  int fd_ = -1;
};

// As read and pread do, but goes on after a signal.
template <class Read>
ssize_t again(Read read) {
  ssize_t got;
  do {
    got = read();
  } while (got < 0 && errno == EINTR);
  return got;
}

Status write_all(int fd, const std::string& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = again([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (written < 0) return failed("writing", path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

bool is_directory(int directory, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN && entry.d_type != DT_LNK) return entry.d_type == DT_DIR;
  struct stat info;
  return fstatat(directory, entry.d_name, &info, 0) == 0 && S_ISDIR(info.st_mode);
}

// Opening a named pipe waits for somebody who writes into it, for ever if need be; opened like this, one that
// nobody writes into is an empty file.
constexpr int kForReading = O_RDONLY | O_NONBLOCK;

class RealFiles : public Files {
 public:
  Result<std::string> read(const std::string& path, std::size_t max_bytes) override {
    const Descriptor file(path, kForReading);
    struct stat info;
    if (!file.open() || fstat(file.get(), &info) != 0) return failed("reading", path, errno);
    const auto too_long = [&](const std::string& bytes) {
      return Error{ErrorCode::kInvalidInput, "reading " + path + ": it has " + bytes + " bytes, at most " +
                                                 std::to_string(max_bytes) + " are allowed"};
    };
    const auto size = static_cast<std::size_t>(info.st_size);
    if (S_ISREG(info.st_mode) && size > max_bytes) return too_long(std::to_string(size));
    // The size is only a hint: files of /proc say 0, others may grow while they are read.
    std::string text;
    std::size_t used = 0;
    while (true) {
      text.resize(
          std::min(max_bytes + 1, used + std::max<std::size_t>(size - std::min(size, used), 4096) + 1));
      const ssize_t got = again([&] { return ::read(file.get(), text.data() + used, text.size() - used); });
      if (got < 0) return failed("reading", path, errno);
      if (got == 0) break;
      used += static_cast<std::size_t>(got);
      if (used > max_bytes) return too_long("more than " + std::to_string(max_bytes));
    }
    text.resize(used);
    return text;
  }

  Result<std::string> read_range(const std::string& path, std::uint64_t offset, std::size_t bytes) override {
    const Descriptor file(path, kForReading);
    struct stat info;
    if (!file.open() || fstat(file.get(), &info) != 0) return failed("reading", path, errno);
    const auto size = static_cast<std::uint64_t>(info.st_size);
    const auto truncated = [&](std::uint64_t end) {
      return Error{ErrorCode::kCorruptData, "reading " + path + ": truncated: " + std::to_string(bytes) +
                                                " bytes wanted at offset " + std::to_string(offset) +
                                                ", the file ends at " + std::to_string(end)};
    };
    // Before anything is allocated: the wish may come out of a damaged file.
    if (offset > size || bytes > size - offset) return truncated(size);
    std::string text(bytes, '\0');
    std::size_t used = 0;
    while (used < bytes) {
      const auto at = static_cast<off_t>(offset + used);
      const ssize_t got = again([&] { return pread(file.get(), text.data() + used, bytes - used, at); });
      if (got < 0) return failed("reading", path, errno);
      if (got == 0) return truncated(offset + used);
      used += static_cast<std::size_t>(got);
    }
    return text;
  }

  Result<std::uint64_t> size(const std::string& path) override {
    struct stat info;
    if (::stat(path.c_str(), &info) != 0) return failed("looking at", path, errno);
    return static_cast<std::uint64_t>(info.st_size);
  }

  bool exists(const std::string& path) override {
    struct stat info;
    return ::stat(path.c_str(), &info) == 0;
  }

  Result<std::vector<DirEntry>> list(const std::string& directory) override {
    DIR* stream = opendir(directory.c_str());
    if (stream == nullptr) return failed("listing", directory, errno);
    std::vector<DirEntry> entries;
    errno = 0;
    while (const dirent* entry = readdir(stream)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..")
        entries.push_back({std::string(name), is_directory(dirfd(stream), *entry)});
      errno = 0;
    }
    const int error = errno;
    closedir(stream);
    if (error != 0) return failed("listing", directory, error);
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return entries;
  }

  Status write_synced(const std::string& path, std::span<const std::string_view> pieces) override {
    Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC);
    if (!file.open()) return failed("writing", path, errno);
    for (const std::string_view piece : pieces) EVENKEEL_TRY(write_all(file.get(), path, piece));
    if (fsync(file.get()) != 0 || file.close() != 0) return failed("writing", path, errno);
    return {};
  }

  Status make_directories(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return failed("making the directory", path, error.value());
    return {};
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (std::rename(from.c_str(), to.c_str()) != 0) return failed("renaming", from + " to " + to, errno);
    return {};
  }

  Status sync_directory(const std::string& path) override {
    const Descriptor directory(path, O_RDONLY | O_DIRECTORY);
    if (!directory.open() || fsync(directory.get()) != 0) return failed("syncing the directory", path, errno);
    return {};
  }

  Status remove_all(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) return failed("removing", path, error.value());
    return {};
  }
};

}  // namespace

Files& real_files() {
  static RealFiles files;
  return files;
}

Status write_atomic(Files& files, const std::string& path, std::string_view content) {
  // Unlike any other writer's, in this process and beside it, so that two never share a half.
  static std::atomic<unsigned> count{0};
  const std::string temporary = path + ".tmp." + std::to_string(getpid()) + "." + std::to_string(count++);
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  const std::string_view pieces[] = {content};
  Status status = files.write_synced(temporary, pieces);
  if (status.ok()) status = files.rename(temporary, path);
  if (!status.ok()) {
    // The first error is the one to tell; what stays behind is a file that nobody reads.
    [[maybe_unused]] const Status ignored = files.remove_all(temporary);
    return status;
  }
  return files.sync_directory(folder);
}

}  // namespace evenkeel::base
