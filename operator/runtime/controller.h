// One run of one TrainingJob: read the caches, decide (operator/reconcile), carry out (operator/act), and say
// when to look again. Called by the workers; never two at once for one key. Thread safe across keys.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "operator/act/actor.h"
#include "operator/act/report_poller.h"
#include "operator/kube/rate_limiter.h"

namespace evenkeel::oper {

// The names of controller-runtime.
enum class RunResult { kSuccess, kError, kRequeue, kRequeueAfter };

struct RunReport {
  RunResult result = RunResult::kSuccess;
  std::optional<base::Duration> requeue_after;
  std::string error;
  bool quiet = false;  // a conflict: everyday, retried, logged below error level
};

// Each end of a job, once. `result`: succeeded | failed | deleted.
using FinishedHook = std::function<void(const std::string& name_space, const std::string& result)>;

class Controller {
 public:
  struct Parts {
    ApiClient& client;
    Stores& stores;
    Expectations& expectations;
    Actor& actor;
    ReportPoller& reports;
    FinishedHook on_finished;
  };
  Controller(Parts parts, ReconcileOptions options);

  // `key`: namespace/name. Exceptions come out; the worker catches them in one place.
  RunReport run(const std::string& key);

 private:
  struct Gathered {
    Json object;
    Observed observed;
  };
  base::Result<Gathered> gather(const std::string& job_uid, Json object, const JobMemory& memory);
  base::Result<Gathered> gather_live(const std::string& job_uid, const Json& cached, const JobMemory& memory);
  Decision decide(const Json& object, const Observed& observed, JobMemory& memory, const std::string& key);
  void pace(Decision& decision, JobMemory& memory, std::optional<base::Duration>& requeue_after);
  void track_coordinator(const contract::TrainingJob& job, const Observed& observed, const std::string& key);
  void count_end(const std::string& name_space, const std::string& phase, JobMemory& memory);
  RunReport gone(const std::string& key);
  RunReport report_of(const ActReport& act, std::optional<base::Duration> requeue_after) const;

  Parts parts_;
  const ReconcileOptions options_;
  RateLimiter progress_writes_{20, 20};
  std::mutex mutex_;
  std::map<std::string, JobMemory> memories_;  // by key; a run owns its entry
};

}  // namespace evenkeel::oper
