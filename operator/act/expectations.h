// Own writes that the caches have not shown yet. A job is acted on only when all of them have been seen; when
// they do not come in time, the caller LISTs live: an expired expectation is never a satisfied one. Kept by
// UID, so a namesake cannot satisfy it. Thread safe; time comes in as a value.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"

namespace evenkeel::oper {

class Expectations {
 public:
  enum class State { kSatisfied, kWaiting, kExpired };

  explicit Expectations(base::Duration patience = std::chrono::seconds(5)) : patience_(patience) {}

  // After the write was answered. The event may have come first: `already_seen` asks the cache, after the
  // note was made.
  void created(const std::string& job_uid, const std::string& uid, base::MonotonicTime now,
               const std::function<bool()>& already_seen);
  void deleted(const std::string& job_uid, const std::string& uid, base::MonotonicTime now,
               const std::function<bool()>& already_gone);
  // The job's own version after a status write. `reached(cached)` says whether a cached version is as new.
  void status_written(const std::string& job_uid, const std::string& version, base::MonotonicTime now,
                      const std::function<bool()>& already_seen);

  // From the caches' handlers.
  void saw(const std::string& uid, bool gone);
  void saw_job(const std::string& job_uid, const std::function<bool(const std::string& expected)>& reached);

  State state(const std::string& job_uid, base::MonotonicTime now) const;
  // How long until kExpired.
  base::Duration remaining(const std::string& job_uid, base::MonotonicTime now) const;

  // After a live LIST of the job and all its children: what is there (by UID) stays expected for another
  // while, what is not there will never come.
  void listed(const std::string& job_uid, const std::function<bool(const std::string& uid)>& present,
              base::MonotonicTime now);
  void forget(const std::string& job_uid);

 private:
  struct Expected {
    bool removal = false;
    base::MonotonicTime until;
  };
  struct Job {
    std::map<std::string, Expected> objects;  // by UID
    std::string version;                      // empty: none expected
    base::MonotonicTime version_until;
    bool empty() const { return objects.empty() && version.empty(); }
  };
  void expect(const std::string& job_uid, const std::string& uid, bool removal, base::MonotonicTime now,
              const std::function<bool()>& already);

  const base::Duration patience_;
  mutable std::mutex mutex_;
  std::map<std::string, Job> jobs_;
  std::map<std::string, std::string> job_of_;  // object UID -> job UID
};

}  // namespace evenkeel::oper
