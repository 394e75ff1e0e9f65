#include "trainer/data/record_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/log.h"

namespace evenkeel::trainer {
namespace {

// Bytes of the table beside each record, roughly.
constexpr std::uint64_t kEntryBytes = 96;

// The common half: the limit, and the one line in the log when nothing more is taken.
class Budget {
 public:
  explicit Budget(const CacheOptions& options) : limit_bytes_(options.limit_bytes), split_(options.split) {}

  bool take(std::uint64_t bytes) {
    if (closed_.load()) return false;
    std::uint64_t held = held_.load();
    do {
      if (bytes > limit_bytes_ || held > limit_bytes_ - bytes) {
        close("the limit is reached");
        return false;
      }
    } while (!held_.compare_exchange_weak(held, held + bytes));
    return true;
  }
  void give_back(std::uint64_t bytes) { held_ -= bytes; }
  void close(const std::string& reason) {
    if (closed_.exchange(true)) return;
    base::log_warning(
        "the record cache takes nothing more; further records are read and decoded each epoch",
        {{"split", split_}, {"reason", reason}, {"held_bytes", held_.load()}, {"limit_bytes", limit_bytes_}});
  }
  std::uint64_t held_bytes() const { return held_.load(); }

 private:
  const std::uint64_t limit_bytes_;
  const std::string split_;
  std::atomic<std::uint64_t> held_{0};
  std::atomic<bool> closed_{false};
};

class MemoryCache : public RecordCache {
 public:
  explicit MemoryCache(const CacheOptions& options) : budget_(options) {}

  std::optional<CachedRecord> find(std::int64_t id) override {
    const std::lock_guard lock(mutex_);
    const auto found = records_.find(id);
    if (found == records_.end()) return std::nullopt;
    return found->second;
  }

  void keep(std::int64_t id, std::int32_t label, std::uint64_t stored_bytes,
            std::string_view bytes) override {
    const std::uint64_t cost = bytes.size() + kEntryBytes;
    if (!budget_.take(cost)) return;
    CachedRecord record{label, stored_bytes, std::string(bytes)};
    const std::lock_guard lock(mutex_);
    if (!records_.try_emplace(id, std::move(record)).second) budget_.give_back(cost);
  }

  std::uint64_t held_bytes() const override { return budget_.held_bytes(); }

 private:
  Budget budget_;
  std::mutex mutex_;
  std::unordered_map<std::int64_t, CachedRecord> records_;
};

class DiskCache : public RecordCache {
 public:
  DiskCache(const CacheOptions& options, int fd) : budget_(options), fd_(fd) {}
  ~DiskCache() override { ::close(fd_); }
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  std::optional<CachedRecord> find(std::int64_t id) override {
    Place place;
    {
      const std::lock_guard lock(mutex_);
      const auto found = places_.find(id);
      if (found == places_.end()) return std::nullopt;
      place = found->second;
    }
    CachedRecord record{place.label, place.stored_bytes, std::string(place.length, '\0')};
    if (!read_all(record.bytes, place.offset)) return std::nullopt;  // then it is read anew, as if never kept
    return record;
  }

  void keep(std::int64_t id, std::int32_t label, std::uint64_t stored_bytes,
            std::string_view bytes) override {
    {
      const std::lock_guard lock(mutex_);
      if (places_.count(id) != 0) return;
    }
    if (!budget_.take(bytes.size() + kEntryBytes)) return;
    const std::uint64_t offset = end_.fetch_add(bytes.size());
    if (!write_all(bytes, offset)) return;
    const std::lock_guard lock(mutex_);
    places_.try_emplace(id, Place{offset, stored_bytes, bytes.size(), label});
  }

  std::uint64_t held_bytes() const override { return budget_.held_bytes(); }

 private:
  struct Place {
    std::uint64_t offset = 0;
    std::uint64_t stored_bytes = 0;
    std::size_t length = 0;
    std::int32_t label = 0;
  };

  bool read_all(std::string& bytes, std::uint64_t offset) {
    for (std::size_t used = 0; used < bytes.size();) {
      const ssize_t got =
          ::pread(fd_, bytes.data() + used, bytes.size() - used, static_cast<off_t>(offset + used));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      used += static_cast<std::size_t>(got);
    }
    return true;
  }

  bool write_all(std::string_view bytes, std::uint64_t offset) {
    while (!bytes.empty()) {
      const ssize_t wrote = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) {
        budget_.close("writing: " + std::generic_category().message(wrote < 0 ? errno : ENOSPC));
        return false;
      }
      bytes.remove_prefix(static_cast<std::size_t>(wrote));
      offset += static_cast<std::uint64_t>(wrote);
    }
    return true;
  }

  Budget budget_;
  const int fd_;
  std::atomic<std::uint64_t> end_{0};
  std::mutex mutex_;
  std::unordered_map<std::int64_t, Place> places_;
};

// A file that vanishes with its descriptor, whatever happens to the process. -1 and errno.
int open_nameless(const std::string& folder) {
  std::string path = folder + "/evenkeel-cache-XXXXXX";
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd >= 0) ::unlink(path.c_str());
  return fd;
}

}  // namespace

std::unique_ptr<RecordCache> make_record_cache(const CacheOptions& options) {
  if (options.mode == contract::CacheMode::kNone) return nullptr;
  if (options.mode == contract::CacheMode::kMemory) return std::make_unique<MemoryCache>(options);
  const int fd = open_nameless(options.folder);
  if (fd >= 0) return std::make_unique<DiskCache>(options, fd);
  base::log_warning("no record cache: no file can be made in the temporary folder",
                    {{"split", options.split},
                     {"folder", options.folder},
                     {"reason", std::generic_category().message(errno)}});
  return nullptr;
}

}  // namespace evenkeel::trainer
