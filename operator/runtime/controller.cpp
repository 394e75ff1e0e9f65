#include "operator/runtime/controller.h"

#include <algorithm>

#include "base/log.h"
#include "contract/job/names.h"
#include "contract/job/validate.h"
#include "contract/labels.h"

namespace evenkeel::oper {
namespace {

// Progress of a running job: at most this often a job; phases, conditions and counters are written at once.
constexpr base::Duration kProgressEvery = std::chrono::seconds(30);
constexpr base::Duration kProgressRetry = std::chrono::seconds(1);
constexpr base::Duration kLongestWait = std::chrono::seconds(30);

std::string phase_of(const Json& object) {
  return base::string_at(base::child(object, "status"), "phase");
}
bool terminal(const std::string& phase) {
  return phase == "Succeeded" || phase == "Failed";
}
std::string meta(const Json& object, std::string_view key) {
  return base::string_at(base::child(object, "metadata"), key);
}

JobRef ref_of(const Json& object) {
  JobRef job{meta(object, "namespace"), meta(object, "name"), meta(object, "uid"),
             meta(object, "resourceVersion"), Json()};
  const auto status = object.find("status");
  if (status != object.end() && status->is_object()) job.status = *status;
  return job;
}

std::optional<base::Duration> sooner(std::optional<base::Duration> a, std::optional<base::Duration> b) {
  if (!a) return b;
  return b ? std::min(*a, *b) : a;
}

// The pod that answers for the job: the coordinator's, or the only worker's where the coordinator runs inside
// it.
const Json* coordinator_pod(const contract::TrainingJob& job, const Observed& observed,
                            std::int64_t attempt) {
  const bool inside = job.spec.strategy.type == contract::StrategyType::kOneDevice ||
                      job.spec.strategy.type == contract::StrategyType::kMirrored;
  const std::string role =
      contract::role_name(inside ? contract::Role::kWorker : contract::Role::kCoordinator);
  for (const Json& pod : observed.pods) {
    const Json& labels = base::at_path(pod, {"metadata", "labels"});
    const Json& status = base::child(pod, "status");
    if (base::string_at(labels, contract::kLabelRole) == role &&
        base::string_at(labels, contract::kLabelAttempt) == std::to_string(attempt) &&
        meta(pod, "deletionTimestamp").empty() && base::string_at(status, "phase") == "Running" &&
        !base::string_at(status, "podIP").empty())
      return &pod;
  }
  return nullptr;
}

}  // namespace

Controller::Controller(Parts parts, ReconcileOptions options)
    : parts_(std::move(parts)), options_(std::move(options)) {}

RunReport Controller::run(const std::string& key) {
  const std::size_t slash = key.find('/');
  std::optional<Json> object = parts_.stores.jobs.get_by_name(key.substr(0, slash), key.substr(slash + 1));
  if (!object) return gone(key);
  JobMemory* memory = nullptr;
  {
    const std::lock_guard lock(mutex_);
    memory = &memories_[key];
  }
  const std::string uid = meta(*object, "uid");
  if (memory->uid != uid) {
    // A namesake: nothing of the old one counts.
    if (!memory->uid.empty()) gone(key);
    const std::lock_guard lock(mutex_);
    memory = &memories_[key];
    memory->uid = uid;
  }
  const base::MonotonicTime now = parts_.client.clock().now();
  const Expectations::State expected = parts_.expectations.state(uid, now);
  if (expected == Expectations::State::kWaiting)
    return {RunResult::kRequeueAfter, parts_.expectations.remaining(uid, now) + std::chrono::milliseconds(1),
            "", true};
  auto gathered = expected == Expectations::State::kExpired ? gather_live(uid, *object, *memory)
                                                            : gather(uid, std::move(*object), *memory);
  if (!gathered.ok()) return {RunResult::kError, std::nullopt, gathered.error().message, false};
  const std::string name_space = meta(gathered->object, "namespace");
  count_end(name_space, phase_of(gathered->object), *memory);
  Decision decision = decide(gathered->object, gathered->observed, *memory, key);
  std::optional<base::Duration> requeue_after = decision.requeue_after;
  pace(decision, *memory, requeue_after);
  const bool wrote_status = decision.status.has_value();
  const ActReport act = parts_.actor.carry_out(ref_of(gathered->object), decision, *memory);
  if (wrote_status && act.status_written) {
    memory->progress_written = now;
    // At once: a job that goes right after its end (TTL 0, a user) is never seen as finished.
    count_end(name_space, base::string_at(*decision.status, "phase"), *memory);
  }
  return report_of(act, requeue_after);
}

base::Result<Controller::Gathered> Controller::gather(const std::string& job_uid, Json object,
                                                      const JobMemory& memory) {
  Gathered all;
  const Stores& stores = parts_.stores;
  all.observed.pods = stores.pods.of_job(job_uid);
  all.observed.services = stores.services.of_job(job_uid);
  all.observed.config_maps = stores.config_maps.of_job(job_uid);
  all.observed.create_errors = memory.create_errors;
  all.observed.name_conflicts = memory.name_conflicts;
  const std::int64_t attempt = base::int_at(base::child(object, "status"), "attempt");
  all.observed.secret_made = memory.secret_attempt == attempt;
  all.observed.key_lost = memory.key_lost_attempt == attempt;
  all.observed.report = parts_.reports.report(job_uid, attempt);
  all.object = std::move(object);
  return all;
}

// Own writes did not show up in the caches: the caches are not believed, the API server is asked.
base::Result<Controller::Gathered> Controller::gather_live(const std::string& job_uid, const Json& cached,
                                                           const JobMemory& memory) {
  base::log_warning("own writes are not in the cache in time; asking the API server",
                    {{"namespace", meta(cached, "namespace")}, {"trainingjob", meta(cached, "name")}});
  const std::string name_space = meta(cached, "namespace");
  const ApiReply job = parts_.client.get(trainingjobs(), name_space, meta(cached, "name"));
  if (!job.ok()) return base::Error{base::ErrorCode::kUnavailable, "reading the job: " + job.message};
  if (meta(job.object, "uid") != job_uid)
    return base::Error{base::ErrorCode::kConflict, "the job was made anew"};
  EVENKEEL_ASSIGN(Gathered all, gather(job_uid, job.object, memory));
  std::set<std::string> present;
  for (auto [resource, target] : {std::pair{&pods(), &all.observed.pods},
                                  {&services(), &all.observed.services},
                                  {&config_maps(), &all.observed.config_maps}}) {
    ListQuery query{.name_space = name_space,
                    .label_selector = std::string(contract::kLabelJobUid) + "=" + job_uid,
                    .limit = 500,
                    .continue_token = ""};
    target->clear();
    do {
      ApiReply page = parts_.client.list(*resource, query);
      if (!page.ok())
        return base::Error{base::ErrorCode::kUnavailable,
                           "listing " + resource->plural + ": " + page.message};
      const Json items = base::child(page.object, "items").is_array() ? page.object["items"] : Json::array();
      for (const Json& item : items) {
        present.insert(meta(item, "uid"));
        target->push_back(item);
      }
      query.continue_token = base::string_at(base::child(page.object, "metadata"), "continue");
    } while (!query.continue_token.empty());
    std::sort(target->begin(), target->end(),
              [](const Json& a, const Json& b) { return meta(a, "name") < meta(b, "name"); });
  }
  parts_.expectations.listed(
      job_uid, [&](const std::string& uid) { return present.contains(uid); }, parts_.client.clock().now());
  return all;
}

Decision Controller::decide(const Json& object, const Observed& observed, JobMemory&,
                            const std::string& key) {
  const std::string managed_by =
      base::string_at(base::child(object, "spec"), "managedBy", contract::kDefaultManagedBy);
  if (managed_by != contract::kDefaultManagedBy) return {};
  const base::WallTime now = parts_.client.clock().wall_now();
  const auto job = contract::decode_job(object);
  if (!job.ok()) {
    parts_.reports.pause(meta(object, "uid"));
    return refuse(object, job.error().message, now);
  }
  track_coordinator(*job, observed, key);
  Decision decision = reconcile(*job, observed, now, options_);
  if (decision.status || !decision.requests.empty()) {
    base::log(decision.status_is_urgent || !decision.requests.empty() ? base::LogLevel::kInfo
                                                                      : base::LogLevel::kDebug,
              "decided",
              {{"namespace", job->meta.name_space},
               {"trainingjob", job->meta.name},
               {"status", decision.status ? phase_of(Json{{"status", *decision.status}}) : ""},
               {"requests", decision.requests.size()},
               {"reasons", decision.reasons}});
  }
  return decision;
}

void Controller::track_coordinator(const contract::TrainingJob& job, const Observed& observed,
                                   const std::string& key) {
  const std::int64_t attempt = base::int_at(job.status_json, "attempt");
  const Json* pod =
      terminal(base::string_at(job.status_json, "phase")) ? nullptr : coordinator_pod(job, observed, attempt);
  if (!pod) return parts_.reports.pause(job.meta.uid);
  parts_.reports.track(job.meta.uid, key,
                       {base::string_at(base::child(*pod, "status"), "podIP"),
                        static_cast<std::uint16_t>(job.spec.metrics_port), attempt});
}

// Numbers alone wait their turn. Events explain a change, so a decision that has some is written at once.
void Controller::pace(Decision& decision, JobMemory& memory, std::optional<base::Duration>& requeue_after) {
  if (!decision.status || decision.status_is_urgent || !decision.events.empty()) return;
  const base::MonotonicTime now = parts_.client.clock().now();
  if (memory.progress_written && now - *memory.progress_written < kProgressEvery) {
    decision.status.reset();
    requeue_after = sooner(requeue_after, kProgressEvery - (now - *memory.progress_written));
  } else if (!progress_writes_.try_take(now)) {
    decision.status.reset();
    requeue_after = sooner(requeue_after, kProgressRetry);
  }
}

// The counter follows what is persisted: seen unfinished before, stored as finished now. What is over stays over,
// also where a cache shows an older state once more.
void Controller::count_end(const std::string& name_space, const std::string& phase, JobMemory& memory) {
  if (terminal(memory.last_phase)) return;
  if (terminal(phase) && !memory.last_phase.empty() && parts_.on_finished)
    parts_.on_finished(name_space, phase == "Succeeded" ? "succeeded" : "failed");
  memory.last_phase = phase.empty() ? "Pending" : phase;
}

RunReport Controller::gone(const std::string& key) {
  JobMemory memory;
  {
    const std::lock_guard lock(mutex_);
    const auto found = memories_.find(key);
    if (found == memories_.end()) return {};
    memory = std::move(found->second);
    memories_.erase(found);
  }
  if (!memory.last_phase.empty() && !terminal(memory.last_phase) && parts_.on_finished)
    parts_.on_finished(key.substr(0, key.find('/')), "deleted");
  parts_.expectations.forget(memory.uid);
  parts_.reports.forget(memory.uid);
  return {};
}

RunReport Controller::report_of(const ActReport& act, std::optional<base::Duration> requeue_after) const {
  switch (act.code) {
    case ActCode::kDone:
      if (requeue_after) return {RunResult::kRequeueAfter, *requeue_after, "", true};
      return {};
    case ActCode::kWait:
      return {RunResult::kRequeueAfter, act.wait ? *act.wait : requeue_after.value_or(kLongestWait),
              act.message, true};
    case ActCode::kConflict:
      return {RunResult::kRequeue, std::nullopt, act.message, true};
    case ActCode::kRetry:
      return {RunResult::kError, std::nullopt, act.message, false};
  }
  return {};
}

}  // namespace evenkeel::oper
