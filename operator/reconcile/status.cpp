#include "operator/reconcile/status.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace evenkeel::oper {
namespace {

constexpr std::array<const char*, 8> kPhaseNames = {"",           "Pending",   "Starting",  "Running",
                                                    "Restarting", "Suspended", "Succeeded", "Failed"};

Phase parse_phase(const std::string& name) {
  const auto at = std::find(kPhaseNames.begin(), kPhaseNames.end(), name);
  return at == kPhaseNames.end() ? Phase::kNone : static_cast<Phase>(at - kPhaseNames.begin());
}

std::vector<std::string> strings(const Json& list) {
  std::vector<std::string> texts;
  for (const Json& item : list) {
    if (item.is_string()) texts.push_back(item.get<std::string>());
  }
  return texts;
}

Restarts decode_restarts(const Json& json) {
  Restarts restarts;
  restarts.total = std::max<std::int64_t>(0, base::int_at(json, "total"));
  restarts.counted = std::max<std::int64_t>(0, base::int_at(json, "countedTowardsMax"));
  restarts.handled = strings(base::child(json, "handled"));
  restarts.next_retry_time = time_at(json, "nextRetryTime");
  return restarts;
}

Json restarts_json(const Restarts& restarts) {
  Json json = {{"total", restarts.total}, {"countedTowardsMax", restarts.counted}};
  if (!restarts.handled.empty()) json["handled"] = restarts.handled;
  if (restarts.next_retry_time) json["nextRetryTime"] = base::to_rfc3339(*restarts.next_retry_time);
  return json;
}

int small_count(const Json& json, const char* key) {
  return static_cast<int>(std::clamp<std::int64_t>(base::int_at(json, key), 0, 1 << 20));
}

std::optional<PodBook> decode_pods(const Json& json) {
  if (!json.is_object() || json.empty()) return std::nullopt;
  PodBook book;
  book.wanted = small_count(json, "wanted");
  book.made = small_count(json, "made");
  book.incarnation = std::max<std::int64_t>(0, base::int_at(json, "incarnation"));
  book.replacing = strings(base::child(json, "replacing"));
  book.replaced = strings(base::child(json, "replaced"));
  for (const Json& item : base::child(json, "lost")) {
    if (const auto since = time_at(item, "since"))
      book.lost.push_back({base::string_at(item, "pod"), *since});
  }
  return book;
}

Json pods_json(const PodBook& book) {
  Json json = {{"wanted", book.wanted}, {"made", book.made}, {"incarnation", book.incarnation}};
  if (!book.replacing.empty()) json["replacing"] = book.replacing;
  if (!book.replaced.empty()) json["replaced"] = book.replaced;
  for (const LostPod& lost : book.lost)
    json["lost"].push_back({{"pod", lost.pod}, {"since", base::to_rfc3339(lost.since)}});
  return json;
}

std::optional<WorkerCounts> decode_workers(const Json& json) {
  if (!json.is_object() || json.empty()) return std::nullopt;
  const auto count = [&](const char* key) { return small_count(json, key); };
  const std::string text = base::string_at(json, "readyText");  // "3/4"
  const std::size_t slash = text.find('/');
  const int replicas = slash == std::string::npos ? 0 : std::atoi(text.c_str() + slash + 1);
  return WorkerCounts{count("desired"),   count("pending"), count("running"),     count("ready"),
                      count("succeeded"), count("failed"),  count("terminating"), replicas};
}

Json workers_json(const WorkerCounts& counts, const std::string& selector) {
  return {{"desired", counts.desired},
          {"pending", counts.pending},
          {"running", counts.running},
          {"ready", counts.ready},
          {"succeeded", counts.succeeded},
          {"failed", counts.failed},
          {"terminating", counts.terminating},
          {"selector", selector},
          {"readyText", std::to_string(counts.ready) + "/" + std::to_string(counts.replicas)}};
}

void put(Json& json, const char* key, const Json& value) {
  if (!value.is_null() && !value.empty()) json[key] = value;
}

}  // namespace

const char* phase_name(Phase phase) {
  return kPhaseNames[static_cast<std::size_t>(phase)];
}

bool is_terminal(Phase phase) {
  return phase == Phase::kSucceeded || phase == Phase::kFailed;
}

std::optional<WallTimeValue> time_at(const Json& object, std::string_view key) {
  const std::string text = base::string_at(object, key);
  if (text.empty()) return std::nullopt;
  const auto time = base::parse_rfc3339(text);
  if (!time.ok()) return std::nullopt;
  return *time;
}

JobStatus decode_status(const Json& json) {
  JobStatus status;
  if (!json.is_object()) return status;
  status.phase = parse_phase(base::string_at(json, "phase"));
  status.observed_generation = base::int_at(json, "observedGeneration");
  status.attempt = std::max<std::int64_t>(0, base::int_at(json, "attempt"));
  status.incarnation = std::max<std::int64_t>(0, base::int_at(json, "incarnation"));
  status.restarts = decode_restarts(base::child(json, "restarts"));
  status.pods = decode_pods(base::child(json, "pods"));
  status.start_time = time_at(json, "startTime");
  status.completion_time = time_at(json, "completionTime");
  status.workers = decode_workers(base::child(json, "workers"));
  status.selector = base::string_at(base::child(json, "workers"), "selector");
  status.conditions = decode_conditions(base::child(json, "conditions"));
  status.progress = base::child(json, "progress");
  status.time = base::child(json, "time");
  status.balance = base::child(json, "balance");
  status.diagnosis = base::child(json, "diagnosis");
  status.replicas = base::child(json, "replicas");
  status.last_failure = base::child(json, "lastFailure");
  return status;
}

Json to_json(const JobStatus& status) {
  Json json = Json::object();
  json["observedGeneration"] = status.observed_generation;
  if (status.phase != Phase::kNone) json["phase"] = phase_name(status.phase);
  json["attempt"] = status.attempt;
  json["incarnation"] = status.incarnation;
  json["restarts"] = restarts_json(status.restarts);
  if (status.pods) json["pods"] = pods_json(*status.pods);
  if (status.start_time) json["startTime"] = base::to_rfc3339(*status.start_time);
  if (status.completion_time) json["completionTime"] = base::to_rfc3339(*status.completion_time);
  if (status.workers) json["workers"] = workers_json(*status.workers, status.selector);
  put(json, "progress", status.progress);
  put(json, "time", status.time);
  put(json, "balance", status.balance);
  put(json, "diagnosis", status.diagnosis);
  put(json, "replicas", status.replicas);
  put(json, "lastFailure", status.last_failure);
  json["conditions"] = to_json(status.conditions);
  return json;
}

}  // namespace evenkeel::oper
