// The decision: (job, what is there, now) -> requests, status, when to come back, reasons. A pure,
// level-triggered function: the same inputs give the same answer, whatever woke it, so a crash at any
// instruction is repaired by the next run. operator/act carries it out; operator/runtime calls it, never two
// at once for one job.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/time_text.h"
#include "contract/job/spec.h"
#include "contract/report.h"

namespace evenkeel::oper {

using base::Json;
using base::WallTimeValue;

// All objects that carry this job's UID label, as the caches hold them (full Kubernetes objects).
struct Observed {
  std::vector<Json> pods;
  std::vector<Json> services;
  std::vector<Json> config_maps;
  // The coordinator's latest report for this UID and attempt, if it has been heard.
  std::optional<contract::JobReport> report;
  // Results of this operator's earlier requests that the objects alone do not show; lost at a restart without
  // harm. Key: "<kind>/<name>".
  std::map<std::string, std::string> create_errors;   // quota, admission, ... : the API server's words
  std::map<std::string, std::string> name_conflicts;  // a stranger holds the name: who
  bool secret_made =
      false;  // POSTed (201 or 409) in this attempt; false only means: POST again, which is harmless
  // In this attempt the Secret had to be made anew while pods with the old key ran: they and new ones would never
  // believe each other.
  bool key_lost = false;
};

enum class Verb { kCreate, kPatch, kDelete };

struct Request {
  Verb verb = Verb::kCreate;
  std::string kind;  // Pod | Service | ConfigMap | Secret | TrainingJob
  std::string name;
  Json body;                     // kCreate: the whole object; kPatch: a merge patch, which may be sent twice
  std::string uid;               // kDelete, kPatch: precondition
  std::string resource_version;  // kDelete: precondition where content decided; else empty
  std::optional<int> grace_seconds;  // kDelete; absent: the object's own
  // kCreate of the Secret: pods of this attempt hold the key, so that it is there. If it is not, nothing that
  // follows is done, and the next run is told (Observed::key_lost).
  bool in_use = false;
  std::string reason;                // for the log
};

struct EventNote {
  bool warning = false;
  std::string reason;   // observability.md 7
  std::string message;  // <= 1,024 bytes
};

struct Decision {
  // The whole new status, or nothing if it is as stored. It is written BEFORE the requests; if that write
  // fails, no request is sent. So counters and attempts are persistent before the first effect that they
  // explain.
  std::optional<Json> status;
  // Progress and balance alone differ: may be written late (at most every 30 s a job, 20/s in all).
  bool status_is_urgent = true;
  std::vector<Request> requests;  // in order; the first failure ends the list
  std::vector<EventNote> events;  // only if the status write succeeded
  std::optional<std::chrono::nanoseconds> requeue_after;
  std::vector<std::string> reasons;  // for the log and for tests: why this
};

struct ReconcileOptions {
  std::string trainer_image;           // where spec.workers.image is empty
  Json pod_defaults = Json::object();  // chart: imagePullSecrets, tolerations, ...
};

// `job` is valid. Never throws, whatever the children look like.
Decision reconcile(const contract::TrainingJob& job, const Observed& observed, WallTimeValue now,
                   const ReconcileOptions& options);

// For an object that does not decode: Accepted=False, phase Failed, nothing else. `object` is as stored.
Decision refuse(const Json& object, const std::string& errors, WallTimeValue now);

}  // namespace evenkeel::oper
