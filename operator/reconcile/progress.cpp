#include "operator/reconcile/progress.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "operator/reconcile/text.h"

namespace evenkeel::oper {
namespace {

constexpr std::size_t kMaxReplicasShown = 64;
constexpr std::size_t kWorstShown = 8;
constexpr std::size_t kRemediesShown = 8;
constexpr double kFlapMargin = 0.05;
constexpr double kLongestEtaSeconds = 10.0 * 365 * 86400;

double rounded(double value, int digits) {
  const double scale = std::pow(10.0, digits);
  return std::isfinite(value) ? std::round(value * scale) / scale : 0.0;
}

void put(Json& json, const char* key, const std::optional<double>& value, int digits = 3) {
  if (value && std::isfinite(*value)) json[key] = rounded(*value, digits);
}

// An estimate moves with the clock although nothing has happened: it is made again only when the numbers have
// changed.
void put_estimate(Json& progress, const Json& stored, const std::optional<double>& eta_seconds,
                  WallTimeValue now) {
  Json known = stored;
  for (const char* member : {"eta", "estimatedCompletionTime"}) {
    if (known.is_object()) known.erase(member);
  }
  const bool changed = !same_json(known, progress);
  if (!changed && stored.contains("eta")) {
    progress["eta"] = stored["eta"];
    if (stored.contains("estimatedCompletionTime"))
      progress["estimatedCompletionTime"] = stored["estimatedCompletionTime"];
    return;
  }
  if (!eta_seconds || !std::isfinite(*eta_seconds) || *eta_seconds < 0 || *eta_seconds > kLongestEtaSeconds)
    return;
  const auto left = std::chrono::seconds(static_cast<std::int64_t>(std::ceil(*eta_seconds)));
  progress["estimatedCompletionTime"] = base::to_rfc3339(now + left);
  progress["eta"] = base::human_duration(left);
}

Json progress_json(const contract::Progress& progress, const Json& stored, WallTimeValue now) {
  Json json = {{"epoch", progress.epoch},
               {"step", progress.step},
               {"targetSteps", progress.target_steps},
               {"samples", progress.samples}};
  put(json, "loss", progress.loss, 4);
  put(json, "evalLoss", progress.eval_loss, 4);
  put(json, "accuracy", progress.accuracy, 4);
  put(json, "samplesPerSecond", progress.samples_per_second, 1);
  if (progress.target_steps > 0)
    json["percent"] = std::min<std::int64_t>(100, 100 * progress.step / progress.target_steps);
  put_estimate(json, stored, progress.eta_seconds, now);
  return json;
}

Json balance_json(const contract::Balance& balance) {
  Json json = Json::object();
  put(json, "imbalanceRatio", balance.imbalance_ratio);
  if (balance.slowest_rank) json["slowestRank"] = *balance.slowest_rank;
  put(json, "scalingEfficiency", balance.scaling_efficiency);
  json["rebalances"] = balance.rebalances;
  return json;
}

bool was_done(contract::RemedyState state) {
  return state == contract::RemedyState::kApplied || state == contract::RemedyState::kReverted;
}

// The best, but whatever was done stays: it is not to be told of twice.
std::vector<contract::Remedy> shown(const std::vector<contract::Remedy>& remedies) {
  const auto done = static_cast<std::size_t>(
      std::count_if(remedies.begin(), remedies.end(), [](const auto& r) { return was_done(r.state); }));
  std::size_t proposals = kRemediesShown - std::min(done, kRemediesShown);
  std::vector<contract::Remedy> list;
  for (const contract::Remedy& remedy : remedies) {
    if (!was_done(remedy.state) && proposals == 0) continue;
    proposals -= was_done(remedy.state) ? 0 : 1;
    list.push_back(remedy);
    if (list.size() == kRemediesShown) break;
  }
  return list;
}

Json remedies_json(const std::vector<contract::Remedy>& remedies) {
  Json list = Json::array();
  for (const contract::Remedy& remedy : shown(remedies)) {
    Json entry = {{"action", fit_text(remedy.action)}};
    put(entry, "predictedGain", remedy.predicted_gain);
    put(entry, "measuredGain", remedy.measured_gain);
    entry["state"] = contract::remedy_state_name(remedy.state);
    list.push_back(std::move(entry));
  }
  return list;
}

Json diagnosis_json(const contract::Diagnosis& diagnosis) {
  Json json = {{"verdict", diagnosis.verdict}};
  if (!diagnosis.message.empty()) json["message"] = fit_text(diagnosis.message);
  Json losses = Json::object();
  put(losses, "compute", diagnosis.losses.compute);
  put(losses, "fixedCost", diagnosis.losses.fixed_cost);
  put(losses, "inputWait", diagnosis.losses.input_wait);
  put(losses, "imbalance", diagnosis.losses.imbalance);
  put(losses, "communication", diagnosis.losses.communication);
  if (!losses.empty()) json["losses"] = std::move(losses);
  if (!diagnosis.remedies.empty()) json["remedies"] = remedies_json(diagnosis.remedies);
  return json;
}

Json replica_json(const contract::ReplicaReport& replica, const std::vector<Pod>& pods) {
  const auto own = std::find_if(pods.begin(), pods.end(), [&](const Pod& pod) {
    return pod.role == contract::Role::kWorker && pod.rank == replica.rank;
  });
  Json json = {{"rank", replica.rank}};
  const std::string pod = own != pods.end() ? own->name : replica.pod;
  const std::string node = own != pods.end() ? own->node : replica.node;
  if (!pod.empty()) json["pod"] = fit_text(pod, 253);
  if (!node.empty()) json["node"] = fit_text(node, 253);
  if (!replica.state.empty()) json["state"] = fit_text(replica.state, 32);
  put(json, "samplesPerSecond", replica.samples_per_second, 1);
  put(json, "busySeconds", replica.busy_seconds, 6);
  put(json, "share", replica.share);
  put(json, "relativePerformance", replica.relative_performance);
  json["shardSamples"] = replica.shard_samples;
  json["consumed"] = replica.consumed;
  return json;
}

// All of them, or of a large job the slowest.
std::vector<contract::ReplicaReport> shown(std::vector<contract::ReplicaReport> replicas) {
  if (replicas.size() > kMaxReplicasShown) {
    std::stable_sort(replicas.begin(), replicas.end(), [](const auto& a, const auto& b) {
      return a.relative_performance.value_or(1) < b.relative_performance.value_or(1);
    });
    replicas.resize(kWorstShown);
  }
  std::stable_sort(replicas.begin(), replicas.end(),
                   [](const auto& a, const auto& b) { return a.rank < b.rank; });
  return replicas;
}

}  // namespace

void apply_report(JobStatus& status, const contract::JobReport& report, const std::vector<Pod>& pods,
                  WallTimeValue now) {
  if (report.stage == contract::JobStage::kRendezvous) return;
  status.progress = progress_json(report.progress, status.progress, now);
  status.balance = balance_json(report.balance);
  status.diagnosis = diagnosis_json(report.diagnosis);
  if (report.replicas.empty()) return;
  Json replicas = Json::array();
  for (const contract::ReplicaReport& replica : shown(report.replicas))
    replicas.push_back(replica_json(replica, pods));
  status.replicas = std::move(replicas);
}

namespace {

// How often each action was done, and of that taken back.
struct Doings {
  int applied = 0, reverted = 0;
  const Json* last = nullptr;
};

std::map<std::string, Doings> doings(const Json& diagnosis) {
  std::map<std::string, Doings> all;
  const Json& remedies = base::child(diagnosis, "remedies");
  if (!remedies.is_array()) return all;
  for (const Json& remedy : remedies) {
    const std::string state = base::string_at(remedy, "state");
    if (state != "Applied" && state != "Reverted") continue;
    Doings& one = all[base::string_at(remedy, "action")];
    ++one.applied;
    one.reverted += state == "Reverted" ? 1 : 0;
    one.last = &remedy;
  }
  return all;
}

std::string gains_text(const Json& remedy) {
  const auto percent = [&](const char* key) {
    return std::to_string(std::lround(100 * remedy.value(key, 0.0))) + "%";
  };
  std::string text = "predicted gain " + percent("predictedGain");
  if (remedy.contains("measuredGain")) text += ", measured " + percent("measuredGain");
  return text;
}

}  // namespace

std::vector<EventNote> remedy_events(const Json& before, const Json& after) {
  std::vector<EventNote> events;
  const auto known = doings(before);
  for (const auto& [action, now] : doings(after)) {
    const auto at = known.find(action);
    const Doings was = at == known.end() ? Doings() : at->second;
    const std::string text = action + ": ";
    if (now.applied > was.applied) events.push_back({false, "RemedyApplied", text + gains_text(*now.last)});
    if (now.reverted > was.reverted)
      events.push_back({false, "RemedyReverted", text + "taken back, " + gains_text(*now.last)});
  }
  return events;
}

std::optional<ConditionText> judge_balance(const contract::JobReport& report, double threshold,
                                           bool is_balanced_now) {
  const contract::ReplicaReport* slowest = nullptr;
  for (const contract::ReplicaReport& replica : report.replicas) {
    if (!replica.relative_performance) continue;
    if (slowest == nullptr || *replica.relative_performance < *slowest->relative_performance)
      slowest = &replica;
  }
  if (slowest == nullptr) return std::nullopt;
  const double limit = is_balanced_now ? threshold : threshold + kFlapMargin;
  // No figures in the message: they change with every report, and a condition is written at once.
  const bool straggler = *slowest->relative_performance < limit;
  // Where shares follow the ranks' speed, a slow rank alone is no imbalance.
  if (report.balance.balanced) {
    if (*report.balance.balanced) return ConditionText{true, "Balanced", "the shares fit the ranks' speed"};
    return ConditionText{false, straggler ? "Straggler" : "LimitedShares", fit_text(report.balance.reason)};
  }
  if (straggler) {
    return ConditionText{false, "Straggler",
                         "rank " + std::to_string(slowest->rank) + " is a straggler; see status.diagnosis"};
  }
  return ConditionText{true, "NoStraggler", "no rank is slower than balance.stragglerThreshold"};
}

}  // namespace evenkeel::oper
