// Keeps one ObjectStore equal to what the API server holds: a consistent list, then watches from its version
// on. Used by runtime, one per kind and namespace, each on a thread of its own. The store says what is; no
// event is lost or passed on as one. `stop` from any thread.
#pragma once

#include <memory>
#include <mutex>
#include <random>
#include <string>

#include "operator/kube/backoff.h"
#include "operator/kube/client.h"
#include "operator/kube/object_store.h"

namespace evenkeel::oper {

// What happens on the watches; implemented by runtime's metrics. Thread safe.
class WatchObserver {
 public:
  virtual ~WatchObserver() = default;
  virtual void watch_event(const std::string& resource, const std::string& type) = 0;  // ADDED, ..., BOOKMARK
  virtual void watch_restarted(const std::string& resource,
                               const std::string& reason) = 0;  // expired | closed | error
  virtual void watch_alive(const std::string& resource) = 0;    // an event, a bookmark, an opening
};

struct ListWatchConfig {
  Resource resource;
  std::string name_space;      // empty: all
  std::string label_selector;  // empty: all
};

class ListWatch {
 public:
  ListWatch(ApiClient& client, ListWatchConfig config, ObjectStore& store, WatchObserver* observer = nullptr,
            unsigned seed = std::random_device{}());

  // Until the client is stopped.
  void run();
  // One list or one watch, to its end. How long to wait before the next step.
  base::Duration step();
  // Ends a watch that is being read.
  void cancel();

  bool needs_list() const { return version_.empty(); }
  const std::string& version() const { return version_; }

 private:
  enum class End { kClosed, kExpired, kError };
  struct WatchResult {
    End end = End::kError;
    std::string message;
    std::optional<base::Duration> retry_after;
    int events = 0;
  };

  base::Duration list();
  base::Duration watch();
  WatchResult read(Stream& stream);
  std::optional<WatchResult> handle(const std::string& line);
  WatchResult handle_error(const Json& status) const;
  base::Duration failed(const std::string& what, const std::string& message,
                        std::optional<base::Duration> retry_after);
  void restarted(const std::string& reason);

  ApiClient& client_;
  const ListWatchConfig config_;
  ObjectStore& store_;
  WatchObserver* observer_;
  Backoff backoff_;
  std::minstd_rand random_;
  std::string version_;  // the last one seen; empty: a list is needed
  std::mutex stream_mutex_;
  std::shared_ptr<Stream> stream_;  // being read
};

}  // namespace evenkeel::oper
