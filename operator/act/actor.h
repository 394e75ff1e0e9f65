// Carries out a Decision: the status first, then the requests in order. Every write may be sent twice without
// harm: creates have deterministic names, deletes a UID, patches a resourceVersion. Thread safe; one run a
// job at a time.
#pragma once

#include <functional>
#include <string>

#include "operator/act/event_recorder.h"
#include "operator/act/expectations.h"
#include "operator/act/job_memory.h"
#include "operator/kube/client.h"
#include "operator/kube/object_store.h"
#include "operator/reconcile/reconcile.h"

namespace evenkeel::oper {

// The caches of everything that is watched.
struct Stores {
  ObjectStore jobs{ObjectStore::Owner::kSelf};
  ObjectStore pods{ObjectStore::Owner::kByLabel};
  ObjectStore services{ObjectStore::Owner::kByLabel};
  ObjectStore config_maps{ObjectStore::Owner::kByLabel};
  // Null for kinds that are not watched (Secret).
  ObjectStore* of_kind(const std::string& kind);
};

// What the queue shall do next; one switch in runtime reads it.
enum class ActCode {
  kDone,
  kConflict,  // the world moved on: run again with fresh data, quietly
  kRetry,     // failed or unknown: back-off, then read back
  kWait,      // come back after `wait`, or when the decision itself says
};

struct ActReport {
  ActCode code = ActCode::kDone;
  std::string message;
  std::optional<base::Duration> wait;
  bool status_written = false;
};

class Actor {
 public:
  // `on_pod_operation(operation, result)`: for counters; may be empty.
  using OperationHook = std::function<void(const std::string& operation, const std::string& result)>;
  Actor(ApiClient& client, Stores& stores, Expectations& expectations, EventRecorder* events,
        OperationHook on_pod_operation = {});

  ActReport carry_out(const JobRef& job, const Decision& decision, JobMemory& memory);

 private:
  ActReport write_status(const JobRef& job, const Json& status);
  ActReport patch_status(const JobRef& job, const Json& status, ApiCode& code);
  ActReport confirm(const JobRef& job);
  bool is_going(const JobRef& job) const;
  ActReport create(const JobRef& job, const Request& request, std::int64_t attempt, JobMemory& memory);
  ActReport already_exists(const JobRef& job, const Request& request, JobMemory& memory);
  ActReport patch(const JobRef& job, const Request& request);
  ActReport remove(const JobRef& job, const Request& request);
  void expect_created(const JobRef& job, const std::string& kind, const std::string& uid);
  void expect_deleted(const JobRef& job, const std::string& kind, const std::string& uid);
  void count(const std::string& kind, const std::string& operation, bool ok) const;

  ApiClient& client_;
  Stores& stores_;
  Expectations& expectations_;
  EventRecorder* events_;
  OperationHook on_pod_operation_;
};

// The UID of the controlling owner, or "".
std::string controller_uid(const Json& object);

}  // namespace evenkeel::oper
