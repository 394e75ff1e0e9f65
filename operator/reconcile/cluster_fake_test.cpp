// The small API server of cluster_fake.h.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "contract/job/manifest_fixture.h"
#include "contract/job/validate.h"
#include "contract/labels.h"
#include "operator/reconcile/cluster_fake.h"

namespace evenkeel::oper {
namespace {

constexpr int kManyRounds = 40;

std::string name_of(const Json& object) {
  return base::string_at(base::child(object, "metadata"), "name");
}
std::string attempt_of(const Json& object) {
  return base::string_at(base::at_path(object, {"metadata", "labels"}), contract::kLabelAttempt);
}
bool deleting(const Json& object) {
  return base::child(object, "metadata").contains("deletionTimestamp");
}
// Without the incarnation.
std::string place_of(const Json& pod) {
  return name_of(pod).substr(0, name_of(pod).rfind('-'));
}
bool runs(const Json& pod) {
  const std::string phase = base::string_at(base::child(pod, "status"), "phase");
  return !deleting(pod) && (phase == "Running" || phase == "Succeeded");
}
bool is_live(const Json& pod) {
  const std::string phase = base::string_at(base::child(pod, "status"), "phase");
  return !deleting(pod) && phase != "Failed" && phase != "Succeeded";
}

contract::TrainingJob make_job(const std::string& spec_patch) {
  Json manifest = contract::short_manifest();
  manifest["metadata"] = {{"name", "t"},
                          {"namespace", "a"},
                          {"uid", "0123456789abcdef"},
                          {"resourceVersion", "1"},
                          {"generation", 1}};
  manifest["spec"].merge_patch(base::parse_json(spec_patch).value());
  auto job = contract::decode_job(manifest);
  if (!job.ok()) throw std::runtime_error(job.error().message);
  return std::move(job).value();
}

}  // namespace

ClusterFake::ClusterFake(const std::string& spec_patch) : job(make_job(spec_patch)) {
  now = base::parse_rfc3339("2026-01-01T00:00:00Z").value();
  options.trainer_image = "trainer:1";
}

Observed ClusterFake::observe() const {
  Observed observed;
  observed.pods = pods;
  observed.services = services;
  observed.config_maps = config_maps;
  observed.report = report;
  observed.create_errors = create_errors_;
  observed.secret_made = secret_attempt_ == attempt() && attempt() > 0;
  observed.key_lost = key_lost_attempt_ == attempt() && attempt() > 0;
  return observed;
}

ClusterFake& ClusterFake::forget() {
  secret_attempt_ = key_lost_attempt_ = 0;
  create_errors_.clear();
  return *this;
}

void ClusterFake::wrote() {
  if (writes_left_ > 0 && --writes_left_ == 0) {
    writes_left_ = -1;
    forget();
    throw Crash{};
  }
}

Decision ClusterFake::step() {
  Decision decision = reconcile(job, observe(), now, options);
  if (decision.status) {
    const std::string was = phase();
    if (was == "Succeeded" || was == "Failed") {
      if (base::string_at(*decision.status, "phase") != was) broken.push_back("a terminal phase changed");
    }
    if (base::int_at(*decision.status, "attempt") < attempt()) broken.push_back("attempt went back");
    job.status_json = *decision.status;
    log.push_back("status " + phase());
    if (base::dump_json(*decision.status).size() > 256u << 10) broken.push_back("the status is too large");
    wrote();
  }
  events.insert(events.end(), decision.events.begin(), decision.events.end());
  for (const Request& request : decision.requests) {
    if (!apply(request)) break;
    wrote();
  }
  return decision;
}

ClusterFake& ClusterFake::settle() {
  for (int round = 0; round < kManyRounds; ++round) {
    try {
      const Decision decision = step();
      const bool only_refused = !create_errors_.empty() && !decision.status;
      if ((decision.requests.empty() || only_refused) && !decision.status) return *this;
    } catch (const Crash&) {
    }
    if (job_deleted) return *this;
  }
  broken.push_back("does not settle");
  return *this;
}

bool ClusterFake::apply(const Request& request) {
  const char* verb = request.verb == Verb::kCreate  ? "create "
                     : request.verb == Verb::kPatch ? "patch "
                                                    : "delete ";
  log.push_back(verb + request.kind + " " + request.name);
  if (request.verb == Verb::kCreate) return create(request);
  if (request.verb == Verb::kPatch) {
    patch(request);
  } else {
    remove(request);
  }
  return true;
}

std::vector<Json>& ClusterFake::list_of(const std::string& kind) {
  return kind == "Pod" ? pods : kind == "Service" ? services : config_maps;
}

void ClusterFake::patch(const Request& request) {
  for (Json& object : list_of(request.kind)) {
    if (name_of(object) != request.name) continue;
    if (base::string_at(base::child(object, "metadata"), "uid") != request.uid)
      broken.push_back("patched a namesake: " + request.name);
    object.merge_patch(request.body);
  }
}

bool ClusterFake::create(const Request& request) {
  const std::string key = request.kind + "/" + request.name;
  if (phase() == "Succeeded" || phase() == "Failed") broken.push_back("created after the end: " + key);
  create_errors_.erase(key);
  if (refuse_creates.contains(key)) {
    create_errors_[key] = refuse_creates[key];
    return false;
  }
  if (request.kind == "Secret") {
    const bool lost = !secret_exists && request.in_use;
    secret_exists = true;
    secret_attempt_ = attempt();
    if (lost) key_lost_attempt_ = attempt();
    return !lost;
  }
  Json object = request.body;
  object["metadata"]["uid"] = "uid-" + std::to_string(next_uid_++);
  std::vector<Json>& list = list_of(request.kind);
  if (std::any_of(list.begin(), list.end(),
                  [&](const Json& other) { return name_of(other) == request.name; })) {
    broken.push_back("made twice: " + key);
    return true;
  }
  if (request.kind == "Pod") {
    object["status"]["phase"] = "Pending";
    for (const Json& other : pods) {
      if (attempt_of(other) != attempt_of(object) && !is_lost(other))
        broken.push_back("two attempts meet: " + key);
      if (place_of(other) != place_of(object)) continue;
      if (is_live(other)) broken.push_back("two live pods of one rank: " + key);
      if (base::at_path(other, {"metadata", "labels"}).contains(contract::kLabelCurrent))
        broken.push_back("two addresses of one rank: " + key);
    }
  }
  list.push_back(std::move(object));
  return true;
}

void ClusterFake::remove(const Request& request) {
  if (request.kind == "TrainingJob") {
    job_deleted = true;
    return;
  }
  std::vector<Json>& list = list_of(request.kind);
  for (Json& object : list) {
    if (base::string_at(base::child(object, "metadata"), "uid") != request.uid) continue;
    const int grace = request.grace_seconds.value_or(60);
    if (request.kind == "Pod" && !deleting(object)) {
      object["metadata"]["deletionTimestamp"] = base::to_rfc3339(now + std::chrono::seconds(grace));
      object["metadata"]["deletionGracePeriodSeconds"] = grace;
    }
  }
  const bool lost = std::find(lost_pods.begin(), lost_pods.end(), request.uid) != lost_pods.end();
  const bool stays = request.kind == "Pod" && (keep_deleted || lost) && request.grace_seconds != 0;
  if (stays) return;
  std::erase_if(list, [&](const Json& object) {
    return base::string_at(base::child(object, "metadata"), "uid") == request.uid;
  });
}

ClusterFake& ClusterFake::patch_spec(const std::string& patch) {
  Json manifest = contract::short_manifest();
  manifest["metadata"] = {{"name", job.meta.name},
                          {"namespace", job.meta.name_space},
                          {"uid", job.meta.uid},
                          {"resourceVersion", "2"},
                          {"generation", job.meta.generation + 1}};
  manifest["spec"] = job.spec_json;
  manifest["spec"].merge_patch(base::parse_json(patch).value());
  manifest["status"] = job.status_json;
  auto edited = contract::decode_job(manifest);
  if (!edited.ok()) throw std::runtime_error(edited.error().message);
  job = std::move(edited).value();
  return *this;
}

Json& ClusterFake::pod(const std::string& host_name) {
  return const_cast<Json&>(std::as_const(*this).pod(host_name));
}

const Json& ClusterFake::pod(const std::string& host_name) const {
  const std::string newest = host_name + "-" + std::to_string(incarnation_of(host_name));
  for (const Json& object : pods) {
    if (name_of(object) == newest) return object;
  }
  throw std::runtime_error("no pod " + host_name);
}

bool ClusterFake::has_pod(const std::string& host_name) const {
  return std::any_of(pods.begin(), pods.end(),
                     [&](const Json& object) { return name_of(object).starts_with(host_name + "-"); });
}

ClusterFake& ClusterFake::run(const std::string& host_name) {
  Json& object = pod(host_name);
  object["spec"]["nodeName"] = "node-1";
  object["status"] = {{"phase", "Running"},
                      {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}};
  return *this;
}

ClusterFake& ClusterFake::run_all() {
  for (const Json& object : std::vector<Json>(pods)) {
    if (is_live(object)) run(place_of(object));
  }
  return *this;
}

ClusterFake& ClusterFake::exit(const std::string& host_name, int code, const std::string& message) {
  Json& object = pod(host_name);
  object["status"]["phase"] = code == 0 ? "Succeeded" : "Failed";
  Json terminated = {{"exitCode", code},
                     {"reason", code == 0 ? "Completed" : "Error"},
                     {"finishedAt", base::to_rfc3339(now)}};
  if (!message.empty()) terminated["message"] = message;
  object["status"]["containerStatuses"] =
      Json::array({{{"name", "trainer"}, {"state", {{"terminated", terminated}}}}});
  return *this;
}

ClusterFake& ClusterFake::erase_pod(const std::string& host_name) {
  const std::string name = name_of(pod(host_name));
  std::erase_if(pods, [&](const Json& object) { return name_of(object) == name; });
  return *this;
}

ClusterFake& ClusterFake::delete_pod(const std::string& host_name) {
  Json& object = pod(host_name);
  object["metadata"]["deletionTimestamp"] = base::to_rfc3339(now + std::chrono::seconds(60));
  object["metadata"]["deletionGracePeriodSeconds"] = 60;
  return *this;
}

ClusterFake& ClusterFake::lose_node_of(const std::string& host_name) {
  Json& object = pod(host_name);
  object["status"]["conditions"] =
      Json::array({{{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "DeletionByTaintManager"}}});
  lost_pods.push_back(base::string_at(base::child(object, "metadata"), "uid"));
  return delete_pod(host_name);
}

bool ClusterFake::is_lost(const Json& pod) const {
  const std::string uid = base::string_at(base::child(pod, "metadata"), "uid");
  return deleting(pod) && std::find(lost_pods.begin(), lost_pods.end(), uid) != lost_pods.end();
}

ClusterFake& ClusterFake::end_deleted() {
  std::erase_if(pods, [&](const Json& object) {
    const std::string uid = base::string_at(base::child(object, "metadata"), "uid");
    return deleting(object) && std::find(lost_pods.begin(), lost_pods.end(), uid) == lost_pods.end();
  });
  return *this;
}

std::int64_t ClusterFake::incarnation_of(const std::string& host_name) const {
  std::int64_t newest = 0;
  for (const Json& object : pods) {
    if (place_of(object) == host_name)
      newest = std::max<std::int64_t>(newest, std::stoll(name_of(object).substr(host_name.size() + 1)));
  }
  return newest;
}

contract::JobReport ClusterFake::make_report(contract::JobStage stage, std::int64_t step) const {
  contract::JobReport made;
  made.job_uid = job.meta.uid;
  made.attempt = static_cast<std::uint32_t>(attempt());
  made.stage = stage;
  made.coordinator_incarnation = static_cast<std::uint32_t>(incarnation_of("t-coordinator-0"));
  made.ranks = job.spec.ranks();
  made.progress.step = step;
  made.progress.target_steps = 100;
  made.progress.samples = step * 256;
  made.progress.eta_seconds = 90.0;
  for (int rank = 0; rank < made.ranks; ++rank) {
    contract::ReplicaReport replica;
    const std::string host_name = "t-worker-" + std::to_string(rank / job.spec.workers.devices_per_replica);
    replica.rank = rank;
    replica.state = "lost";
    if (has_pod(host_name) && runs(pod(host_name))) {
      ++made.joined;
      replica.state = "stepping";
      replica.pod = name_of(pod(host_name));
    }
    replica.consumed = step * 64;
    made.replicas.push_back(replica);
  }
  return made;
}

ClusterFake& ClusterFake::join_all(std::int64_t step) {
  report = make_report(contract::JobStage::kRunning, step);
  return settle();
}

std::string ClusterFake::phase() const {
  return base::string_at(status(), "phase");
}
std::int64_t ClusterFake::attempt() const {
  return base::int_at(status(), "attempt");
}

namespace {
const Json& find_condition(const Json& status, const std::string& type) {
  static const Json kEmpty = Json::object();
  for (const Json& item : base::child(status, "conditions")) {
    if (base::string_at(item, "type") == type) return item;
  }
  return kEmpty;
}
}  // namespace

std::string ClusterFake::condition(const std::string& type) const {
  return base::string_at(find_condition(status(), type), "status");
}
std::string ClusterFake::condition_reason(const std::string& type) const {
  return base::string_at(find_condition(status(), type), "reason");
}
std::string ClusterFake::condition_message(const std::string& type) const {
  return base::string_at(find_condition(status(), type), "message");
}

int ClusterFake::count(const std::string& what) const {
  return static_cast<int>(
      std::count_if(log.begin(), log.end(), [&](const std::string& line) { return line.starts_with(what); }));
}

bool ClusterFake::has_event(const std::string& reason) const {
  return std::any_of(events.begin(), events.end(),
                     [&](const EventNote& event) { return event.reason == reason; });
}

std::string ClusterFake::end_state() const {
  const Json& restarts = base::child(status(), "restarts");
  std::string text = phase() + " attempt " + std::to_string(attempt()) + " incarnation " +
                     std::to_string(base::int_at(status(), "incarnation")) + " restarts " +
                     std::to_string(base::int_at(restarts, "total")) + "/" +
                     std::to_string(base::int_at(restarts, "countedTowardsMax")) + " services " +
                     std::to_string(services.size()) + " configs " + std::to_string(config_maps.size()) +
                     " pods";
  std::vector<std::string> names;
  for (const Json& object : pods)
    names.push_back(name_of(object) + ":" + base::string_at(base::child(object, "status"), "phase"));
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) text += " " + name;
  return text;
}

}  // namespace evenkeel::oper
