// I3, I4 and I8: what the status of a job may become, and what must stand in it before a pod is deleted.
#include "contract/labels.h"
#include "tests/support/invariants/judge.h"
#include "tests/support/invariants/view.h"

namespace evenkeel::invariants {
namespace {

constexpr std::int64_t kDefaultMaxRestarts = 10;

const Json& status(const Change& job) {
  return base::child(job.object, "status");
}
std::int64_t attempt(const Change& job) {
  return base::int_at(status(job), "attempt");
}
std::int64_t generation(const Change& job) {
  return base::int_at(base::child(job.object, "metadata"), "generation");
}

std::string fault_of_counters(const Change& before, const Change& now) {
  if (attempt(now) < attempt(before))
    return "attempt fell from " + std::to_string(attempt(before)) + " to " + std::to_string(attempt(now));
  const std::int64_t counted = base::int_at(base::child(status(now), "restarts"), "countedTowardsMax");
  const std::int64_t limit =
      base::int_at(base::at_path(now.object, {"spec", "restart"}), "maxRestarts", kDefaultMaxRestarts);
  if (counted <= limit) return "";
  return std::to_string(counted) + " restarts are counted, the limit is " + std::to_string(limit);
}

// What a job must say before one of its pods may be deleted: that there is a later attempt, that there will be a
// replacement, or that the pod is not wanted any more.
bool allows_delete(const Change& job, const Json& pod) {
  if (job.type == "DELETED" || terminating(job.object) || terminal(phase(job.object))) return true;
  const Json& spec = base::child(job.object, "spec");
  if (base::bool_at(spec, "suspend") || phase(job.object) == "Suspended") return true;
  if (attempt(job) > label_number(pod, contract::kLabelAttempt)) return true;
  if (base::int_at(status(job), "incarnation") > label_number(pod, contract::kLabelIncarnation)) return true;
  return label_number(pod, contract::kLabelRank) >= base::int_at(base::child(spec, "workers"), "replicas");
}

// UIDs of pods that the operator deleted.
std::map<std::string, const Call*> deleted_by_operator(const Trace& trace) {
  std::map<std::string, const Call*> all;
  for (const Call& call : trace.calls) {
    const std::string uid = base::string_at(base::child(call.body, "preconditions"), "uid");
    if (call.by_operator && call.done() && call.verb == "delete" && call.resource == "pods" && !uid.empty())
      all.emplace(uid, &call);
  }
  return all;
}

std::string fault_of_generation(const Change* before, const Change& now) {
  const std::int64_t observed = base::int_at(status(now), "observedGeneration");
  if (observed > generation(now))
    return "observedGeneration " + std::to_string(observed) + " is over generation " + std::to_string(generation(now));
  const std::int64_t earlier = before ? base::int_at(status(*before), "observedGeneration") : 0;
  if (observed >= earlier) return "";
  return "observedGeneration fell from " + std::to_string(earlier) + " to " + std::to_string(observed);
}

// The first event that shows a pod going, when its job, as it was then, gave no reason.
class Deletes {
 public:
  explicit Deletes(const Trace& trace) : calls_(deleted_by_operator(trace)) {}
  void on_pod(const Change& pod, const std::map<std::string, const Change*>& jobs, Violations& found) {
    if (pod.type != "DELETED" && !terminating(pod.object)) return;
    const auto call = calls_.find(pod.uid);
    if (call == calls_.end()) return;
    const auto job = jobs.find(job_uid(pod.object));
    if (job != jobs.end() && !allows_delete(*job->second, pod.object))
      found.push_back({"I3", "deleted before the status said why: attempt is " + std::to_string(attempt(*job->second)),
                       where(*call->second), object_of(pod)});
    calls_.erase(call);
  }

 private:
  std::map<std::string, const Call*> calls_;
};

}  // namespace

Violations restarts_are_written_first(const Trace& trace) {
  Violations found;
  std::map<std::string, const Change*> jobs;
  Deletes deletes(trace);
  for (const Change& change : trace.changes) {
    if (change.kind == "Pod") deletes.on_pod(change, jobs, found);
    if (!is_job(change)) continue;
    const Change*& last = jobs[change.uid];
    const std::string fault = fault_of_counters(last ? *last : change, change);
    if (!fault.empty()) found.push_back({"I3", fault, where(change), object_of(change)});
    last = &change;
  }
  return found;
}

Violations terminal_is_sticky(const Trace& trace) {
  Violations found;
  std::map<std::string, std::string> ended;  // UID of a job: its last phase
  for (const Change& change : trace.changes) {
    const auto job = ended.find(is_job(change) ? change.uid : job_uid(change.object));
    if (is_job(change)) {
      if (job != ended.end() && phase(change.object) != job->second)
        found.push_back({"I4", "the phase " + job->second + " became '" + phase(change.object) + "'", where(change),
                         object_of(change)});
      if (terminal(phase(change.object))) ended.emplace(change.uid, phase(change.object));
    } else if (change.type == "ADDED" && job != ended.end()) {
      found.push_back({"I4", "it was made after its job had " + job->second, where(change), object_of(change)});
    }
  }
  return found;
}

Violations observed_generation_is_behind(const Trace& trace) {
  Violations found;
  std::map<std::string, const Change*> jobs;
  for (const Change& change : trace.changes) {
    if (!is_job(change)) continue;
    const Change*& last = jobs[change.uid];
    const std::string fault = fault_of_generation(last, change);
    if (!fault.empty()) found.push_back({"I8", fault, where(change), object_of(change)});
    last = &change;
  }
  return found;
}

}  // namespace evenkeel::invariants
