// Keys of objects that need a look: deduplicated, delayed, backed off; the reason for a wake-up is never
// kept. Never two runs of one key at once. Level-triggered by type. Thread safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "operator/kube/rate_limiter.h"

namespace evenkeel::oper {

// For metrics; called without the queue's lock.
class QueueObserver {
 public:
  virtual ~QueueObserver() = default;
  virtual void queue_added() = 0;
  virtual void queue_retried() = 0;
  virtual void queue_started(double waited_seconds) = 0;
  virtual void queue_finished(double worked_seconds) = 0;
};

class WorkQueue {
 public:
  explicit WorkQueue(base::Clock& clock, QueueObserver* observer = nullptr);

  void add(const std::string& key);
  // At the latest then; an earlier time that is known already stands.
  void add_after(const std::string& key, base::Duration delay);
  // After a failure: per key 5 ms doubling to 1000 s, over all keys 10/s after a burst of 100.
  void retry(const std::string& key);
  // Success: the next failure starts at 5 ms again.
  void forget_failures(const std::string& key);

  // The next key, or nothing at shutdown. The caller must call done(key).
  std::optional<std::string> take();
  // The same without waiting.
  std::optional<std::string> try_take();
  // A key that was added meanwhile comes up again.
  void done(const std::string& key);
  void stop();

  std::size_t depth() const;
  double unfinished_seconds() const;
  double longest_running_seconds() const;

 private:
  void add_locked(const std::string& key);
  void move_due_locked(base::MonotonicTime now);
  std::optional<std::string> take_locked(base::MonotonicTime now, double& waited);

  base::Clock& clock_;
  QueueObserver* observer_;
  RateLimiter overall_{10, 100};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> ready_;
  std::map<std::string, base::MonotonicTime> dirty_;       // needs a run; since when
  std::map<std::string, base::MonotonicTime> processing_;  // since when
  std::map<std::string, base::MonotonicTime> delayed_;     // until when
  std::map<std::string, int> failures_;
  bool stopped_ = false;
};

}  // namespace evenkeel::oper
