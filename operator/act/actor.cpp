#include "operator/act/actor.h"

#include <set>

#include "base/hash.h"
#include "base/log.h"
#include "contract/labels.h"
#include "operator/act/status_patch.h"

namespace evenkeel::oper {
namespace {

constexpr std::size_t kKeyBytes = 32;
constexpr base::Duration kNamespaceWait = std::chrono::seconds(30);
// A refusal that is heard for the first time is shown in the status at once; after that the decision paces
// the tries.
constexpr base::Duration kShowIt = std::chrono::milliseconds(10);

ActReport retry(std::string message, std::optional<base::Duration> after = std::nullopt) {
  return {after ? ActCode::kWait : ActCode::kRetry, std::move(message), after, false};
}

ActReport noted(std::map<std::string, std::string>& notes, const std::string& key, const std::string& note,
                const std::string& message, std::optional<base::Duration> wait = std::nullopt) {
  const bool is_new = notes.emplace(key, note).second;
  if (!is_new) notes[key] = note;
  return {ActCode::kWait, message, is_new ? kShowIt : wait, false};
}

std::string key_of(const Request& request) {
  return request.kind + "/" + request.name;
}

const char* verb_name(Verb verb) {
  switch (verb) {
    case Verb::kCreate:
      return "create";
    case Verb::kPatch:
      return "patch";
    case Verb::kDelete:
      return "delete";
  }
  return "";
}

std::string holder(const Json& object) {
  for (const Json& owner : base::at_path(object, {"metadata", "ownerReferences"}))
    if (base::bool_at(owner, "controller"))
      return base::string_at(owner, "kind") + " " + base::string_at(owner, "name");
  return "an object that has no owner";
}

bool terminating(const Json& object) {
  return !base::string_at(base::child(object, "metadata"), "deletionTimestamp").empty();
}

// A note on an object that is not asked for any more says nothing about this job's future.
void drop_notes_of_others(const Decision& decision, JobMemory& memory) {
  std::set<std::string> wanted;
  for (const Request& request : decision.requests)
    if (request.verb == Verb::kCreate) wanted.insert(key_of(request));
  for (auto* notes : {&memory.create_errors, &memory.name_conflicts})
    std::erase_if(*notes, [&](const auto& note) { return !wanted.contains(note.first); });
}

// The key is drawn here and nowhere kept: the API server alone holds it.
Json with_key(const Json& secret) {
  Json body = secret;
  Json& key = body["data"][contract::kKeyFile];
  if (!key.is_string() || key.get_ref<const std::string&>().empty())
    key = base::to_base64(base::random_bytes(kKeyBytes));
  return body;
}

}  // namespace

ObjectStore* Stores::of_kind(const std::string& kind) {
  if (kind == "Pod") return &pods;
  if (kind == "Service") return &services;
  if (kind == "ConfigMap") return &config_maps;
  if (kind == contract::kKind) return &jobs;
  return nullptr;
}

std::string controller_uid(const Json& object) {
  for (const Json& owner : base::at_path(object, {"metadata", "ownerReferences"}))
    if (base::bool_at(owner, "controller")) return base::string_at(owner, "uid");
  return "";
}

Actor::Actor(ApiClient& client, Stores& stores, Expectations& expectations, EventRecorder* events,
             OperationHook on_pod_operation)
    : client_(client),
      stores_(stores),
      expectations_(expectations),
      events_(events),
      on_pod_operation_(std::move(on_pod_operation)) {}

ActReport Actor::carry_out(const JobRef& job, const Decision& decision, JobMemory& memory) {
  ActReport report;
  if (decision.status) {
    report = write_status(job, *decision.status);
    if (report.code != ActCode::kDone) return report;
  }
  // The status write is the proof that this view of the job is the one of today. Without one, ask.
  if (!report.status_written && !decision.requests.empty()) {
    report = confirm(job);
    if (report.code != ActCode::kDone) return report;
  }
  if (events_)
    for (const EventNote& note : decision.events) events_->record(job, note);
  drop_notes_of_others(decision, memory);
  const std::int64_t attempt = base::int_at(decision.status ? *decision.status : job.status, "attempt");
  for (const Request& request : decision.requests) {
    if (request.verb == Verb::kCreate && is_going(job)) {
      ActReport stopped{ActCode::kConflict, "the job is being deleted: nothing more is created", {}, false};
      stopped.status_written = report.status_written;
      return stopped;
    }
    ActReport one = request.verb == Verb::kCreate  ? create(job, request, attempt, memory)
                    : request.verb == Verb::kPatch ? patch(job, request)
                                                   : remove(job, request);
    base::log_info(verb_name(request.verb), {{"namespace", job.name_space},
                                             {"trainingjob", job.name},
                                             {"kind", request.kind},
                                             {"name", request.name},
                                             {"reason", request.reason},
                                             {"result", one.code == ActCode::kDone ? "ok" : one.message}});
    if (one.code != ActCode::kDone) {
      one.status_written = report.status_written;
      return one;
    }
  }
  return report;
}

ActReport Actor::patch_status(const JobRef& job, const Json& status, ApiCode& code) {
  const Json difference = merge_difference(job.status, status);
  code = ApiCode::kOk;
  if (difference.empty()) return {};
  // The version tells a changed object and a re-created namesake apart.
  const Json patch{{"metadata", {{"resourceVersion", job.resource_version}, {"uid", job.uid}}},
                   {"status", difference}};
  const ApiReply reply = client_.merge_patch_status(trainingjobs(), job.name_space, job.name, patch);
  code = reply.code;
  switch (reply.code) {
    case ApiCode::kOk: {
      const std::string version = base::string_at(base::child(reply.object, "metadata"), "resourceVersion");
      expectations_.status_written(job.uid, version, client_.clock().now(), [&] {
        const auto cached = stores_.jobs.get(job.uid);
        if (!cached) return false;
        const std::string held = base::string_at(base::child(*cached, "metadata"), "resourceVersion");
        return held == version || stores_.jobs.compare_versions(held, version) > 0;
      });
      return {ActCode::kDone, "", std::nullopt, true};
    }
    case ApiCode::kConflict:
      return {ActCode::kConflict, reply.message, {}, false};
    case ApiCode::kNotFound:
      return {ActCode::kConflict, "the job is gone", {}, false};
    default:
      return retry("writing the status: " + reply.message, reply.retry_after);
  }
}

ActReport Actor::write_status(const JobRef& job, const Json& status) {
  ApiCode code = ApiCode::kOk;
  ActReport report = patch_status(job, status, code);
  if (code != ApiCode::kTooLarge) return report;
  base::log_warning("the status is too large; a shorter one is written",
                    {{"namespace", job.name_space}, {"trainingjob", job.name}});
  return patch_status(job, shorter_status(status), code);
}

// A cache may show a job that was made anew long ago, or an earlier state of it: after a restart, a server that lags
// behind the others. What other hands write beside the status does not matter.
ActReport Actor::confirm(const JobRef& job) {
  const ApiReply live = client_.get(trainingjobs(), job.name_space, job.name);
  if (live.code == ApiCode::kNotFound) return {ActCode::kConflict, "the job is gone", {}, false};
  if (!live.ok()) return retry("reading the job: " + live.message, live.retry_after);
  const Json& metadata = base::child(live.object, "metadata");
  if (base::string_at(metadata, "uid") != job.uid)
    return {ActCode::kConflict, "the job was made anew", {}, false};
  if (terminating(live.object)) return {ActCode::kConflict, "the job is being deleted", {}, false};
  const Json& status = base::child(live.object, "status");
  if (status.empty() ? !job.status.empty() : status != job.status)
    return {ActCode::kConflict, "the cache shows an earlier status of the job", {}, false};
  return {};
}

// Told by the watch while a long list of creates is under way.
bool Actor::is_going(const JobRef& job) const {
  const auto cached = stores_.jobs.get(job.uid);
  return cached && terminating(*cached);
}

void Actor::count(const std::string& kind, const std::string& operation, bool ok) const {
  if (kind == "Pod" && on_pod_operation_) on_pod_operation_(operation, ok ? "success" : "error");
}

void Actor::expect_created(const JobRef& job, const std::string& kind, const std::string& uid) {
  ObjectStore* store = stores_.of_kind(kind);
  if (!store || uid.empty()) return;
  expectations_.created(job.uid, uid, client_.clock().now(), [&] { return store->get(uid).has_value(); });
}

void Actor::expect_deleted(const JobRef& job, const std::string& kind, const std::string& uid) {
  ObjectStore* store = stores_.of_kind(kind);
  if (!store) return;
  expectations_.deleted(job.uid, uid, client_.clock().now(), [&] {
    const auto cached = store->get(uid);
    return !cached || terminating(*cached);
  });
}

ActReport Actor::create(const JobRef& job, const Request& request, std::int64_t attempt, JobMemory& memory) {
  const Resource* resource = resource_of_kind(request.kind);
  if (!resource) return retry("a decision asks for the unknown kind '" + request.kind + "'");
  const bool secret = request.kind == "Secret";
  const ApiReply reply =
      client_.create(*resource, job.name_space, secret ? with_key(request.body) : request.body);
  if (reply.code == ApiCode::kAlreadyExists && !secret) return already_exists(job, request, memory);
  const bool made = reply.ok() || reply.code == ApiCode::kAlreadyExists;
  count(request.kind, "create", made);
  if (made) {
    memory.create_errors.erase(key_of(request));
    memory.name_conflicts.erase(key_of(request));
    if (secret) {
      memory.secret_attempt = attempt;
      if (reply.ok() && request.in_use) {
        memory.key_lost_attempt = attempt;
        return {ActCode::kConflict, key_of(request) + " was gone: the pods hold another key", {}, false};
      }
    } else
      expect_created(job, request.kind, base::string_at(base::child(reply.object, "metadata"), "uid"));
    return {};
  }
  const std::string message = "creating " + key_of(request) + ": " + reply.message;
  switch (reply.code) {
    case ApiCode::kNamespaceTerminating:
      return noted(memory.create_errors, key_of(request), reply.message, message, kNamespaceWait);
    case ApiCode::kRejected:
    case ApiCode::kTooLarge:
    case ApiCode::kNotFound:  // the namespace
      return noted(memory.create_errors, key_of(request), reply.message, message);
    default:
      // Unknown outcome: the next run POSTs the same name, and AlreadyExists reads it back.
      return retry(message, reply.retry_after);
  }
}

ActReport Actor::already_exists(const JobRef& job, const Request& request, JobMemory& memory) {
  const ApiReply reply = client_.get(*resource_of_kind(request.kind), job.name_space, request.name);
  if (!reply.ok())
    return retry("reading " + key_of(request) + ", which exists already: " + reply.message,
                 reply.retry_after);
  if (controller_uid(reply.object) == job.uid) {
    // An earlier POST of ours whose answer was lost, or that the cache does not show yet.
    count(request.kind, "create", true);
    memory.create_errors.erase(key_of(request));
    memory.name_conflicts.erase(key_of(request));
    expect_created(job, request.kind, base::string_at(base::child(reply.object, "metadata"), "uid"));
    return {};
  }
  count(request.kind, "create", false);
  const std::string who = holder(reply.object) + (terminating(reply.object) ? " (terminating)" : "");
  return noted(memory.name_conflicts, key_of(request), who, key_of(request) + " is held by " + who);
}

ActReport Actor::patch(const JobRef& job, const Request& request) {
  const Resource* resource = resource_of_kind(request.kind);
  if (!resource || request.uid.empty())
    return retry("a decision patches " + key_of(request) + " without kind or UID");
  Json body = request.body;
  body["metadata"]["uid"] = request.uid;  // a namesake answers 409
  const ApiReply reply = client_.merge_patch(*resource, job.name_space, request.name, body);
  const bool done = reply.ok() || reply.code == ApiCode::kNotFound;
  count(request.kind, "patch", done);
  if (done) return {};
  if (reply.code == ApiCode::kConflict)
    return {ActCode::kConflict, "patching " + key_of(request) + ": " + reply.message, {}, false};
  return retry("patching " + key_of(request) + ": " + reply.message, reply.retry_after);
}

ActReport Actor::remove(const JobRef& job, const Request& request) {
  const Resource* resource = resource_of_kind(request.kind);
  if (!resource || request.uid.empty())
    return retry("a decision deletes " + key_of(request) + " without kind or UID");
  if (request.kind == "Pod") {
    // A cache that lags must not cost a running pod: look once more.
    const ApiReply live = client_.get(*resource, job.name_space, request.name);
    const bool other =
        live.ok() && base::string_at(base::child(live.object, "metadata"), "uid") != request.uid;
    if (live.code == ApiCode::kNotFound || other) {
      expect_deleted(job, request.kind, request.uid);
      return {};
    }
    if (!live.ok())
      return retry("reading " + key_of(request) + " before its deletion: " + live.message, live.retry_after);
    if (controller_uid(live.object) != job.uid)
      return retry(key_of(request) + " is not this job's; it is not deleted");
  }
  const ApiReply reply = client_.remove(*resource, job.name_space, request.name,
                                        {request.uid, request.resource_version, request.grace_seconds});
  const bool gone = reply.ok() || reply.code == ApiCode::kNotFound;
  count(request.kind, "delete", gone);
  if (gone) {
    if (request.kind != contract::kKind) expect_deleted(job, request.kind, request.uid);
    return {};
  }
  if (reply.code == ApiCode::kConflict) {
    // Another UID has the name: ours is gone. Or its content has changed: decide again.
    return {ActCode::kConflict, "deleting " + key_of(request) + ": " + reply.message, {}, false};
  }
  return retry("deleting " + key_of(request) + ": " + reply.message, reply.retry_after);
}

}  // namespace evenkeel::oper
