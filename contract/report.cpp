#include "contract/report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/json_reader.h"

namespace evenkeel::contract {

using base::Error;
using base::ErrorCode;
using base::JsonReader;
using base::Result;

namespace {

constexpr std::size_t kMaxTextBytes = 1024;
constexpr std::size_t kMaxRemedies = 64;
const std::vector<std::string_view> kRemedyStates = {"Proposed", "Applied", "Reverted", "NotAllowed"};
const std::vector<std::string_view> kStageNames = {"Rendezvous", "Running", "Stopping",
                                                   "Completed",  "Stopped", "Failed"};

// Cut at a character, never inside one.
std::string cut_text(std::string text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  std::size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text;
}

void put(Json& json, const char* key, const std::optional<double>& value) {
  if (value) json[key] = *value;
}

std::optional<double> optional_number(JsonReader& r, std::string_view key) {
  if (!r.has(key)) return std::nullopt;
  return r.number(key, 0);
}

Json progress_json(const Progress& p) {
  Json json = {{"epoch", p.epoch}, {"step", p.step}, {"targetSteps", p.target_steps}, {"samples", p.samples}};
  put(json, "loss", p.loss);
  put(json, "evalLoss", p.eval_loss);
  put(json, "accuracy", p.accuracy);
  put(json, "samplesPerSecond", p.samples_per_second);
  put(json, "etaSeconds", p.eta_seconds);
  if (p.skipped > 0) json["skipped"] = p.skipped;
  return json;
}

Progress read_progress(JsonReader r) {
  Progress p;
  p.epoch = r.count("epoch");
  p.step = r.count("step");
  p.target_steps = r.count("targetSteps");
  p.samples = r.count("samples");
  p.loss = optional_number(r, "loss");
  p.eval_loss = optional_number(r, "evalLoss");
  p.accuracy = optional_number(r, "accuracy");
  p.samples_per_second = optional_number(r, "samplesPerSecond");
  p.eta_seconds = optional_number(r, "etaSeconds");
  p.skipped = r.count("skipped");
  return p;
}

Json replica_json(const ReplicaReport& p) {
  Json json = {{"rank", p.rank}, {"pod", p.pod}, {"node", p.node}, {"state", p.state}};
  put(json, "samplesPerSecond", p.samples_per_second);
  put(json, "busySeconds", p.busy_seconds);
  put(json, "share", p.share);
  put(json, "relativePerformance", p.relative_performance);
  json["shardSamples"] = p.shard_samples;
  json["consumed"] = p.consumed;
  json["threads"] = p.threads;
  json["cpuLimit"] = p.cpu_limit;
  return json;
}

ReplicaReport read_replica(JsonReader& r) {
  ReplicaReport p;
  p.rank = static_cast<int>(r.integer("rank", 0, 0, 65535));
  p.pod = cut_text(r.string("pod"), 253);
  p.node = cut_text(r.string("node"), 253);
  p.state = cut_text(r.string("state"), 32);
  p.samples_per_second = optional_number(r, "samplesPerSecond");
  p.busy_seconds = optional_number(r, "busySeconds");
  p.share = optional_number(r, "share");
  p.relative_performance = optional_number(r, "relativePerformance");
  p.shard_samples = r.count("shardSamples");
  p.consumed = r.count("consumed");
  p.threads = static_cast<int>(r.integer("threads", 0, 0, 65536));
  p.cpu_limit = r.number("cpuLimit", 0);
  return p;
}

Json remedy_json(const Remedy& remedy) {
  Json json = {{"action", remedy.action}, {"predictedGain", remedy.predicted_gain}};
  put(json, "measuredGain", remedy.measured_gain);
  put(json, "predictedLossGain", remedy.predicted_loss_gain);
  json["state"] = remedy_state_name(remedy.state);
  return json;
}

Remedy read_remedy(JsonReader& r) {
  Remedy remedy;
  remedy.action = cut_text(r.string("action"), 256);
  remedy.predicted_gain = r.number("predictedGain", 0);
  remedy.measured_gain = optional_number(r, "measuredGain");
  remedy.predicted_loss_gain = optional_number(r, "predictedLossGain");
  remedy.state = static_cast<RemedyState>(r.one_of("state", kRemedyStates, 0));
  return remedy;
}

Json waterfall_json(const WaterfallReport& w) {
  Json json = {{"ranks", w.ranks}, {"stepSeconds", w.step_seconds}};
  put(json, "speedup", w.speedup);
  put(json, "residueSeconds", w.residue_seconds);
  json["baseline"] = w.baseline;
  json["terms"] = Json::array();
  for (const WaterfallTerm& term : w.terms) {
    Json entry = {{"name", term.name}, {"seconds", term.seconds}};
    put(entry, "ranks", term.ranks);
    json["terms"].push_back(std::move(entry));
  }
  return json;
}

WaterfallReport read_waterfall(JsonReader r) {
  WaterfallReport w;
  w.ranks = static_cast<int>(r.integer("ranks", 0, 0, 65536));
  w.step_seconds = r.number("stepSeconds", 0);
  w.speedup = optional_number(r, "speedup");
  w.residue_seconds = optional_number(r, "residueSeconds");
  w.baseline = cut_text(r.string("baseline", "none"), 32);
  for (JsonReader& term : r.array("terms", 16)) {
    w.terms.push_back(
        {cut_text(term.string("name"), 32), term.number("seconds", 0), optional_number(term, "ranks")});
  }
  return w;
}

// [rank, samples, compute, input]: names would be most of the text. Six digits are more than a picture shows.
double shortened(double value) {
  return std::round(value * 1e6) / 1e6;
}

Json history_json(const HistoryPoint& point) {
  Json ranks = Json::array();
  for (const HistoryRank& r : point.ranks) {
    ranks.push_back(Json::array(
        {r.rank, shortened(r.samples), shortened(r.compute_seconds), shortened(r.input_seconds)}));
  }
  return {{"step", point.step},
          {"steps", point.steps},
          {"stepSeconds", shortened(point.step_seconds)},
          {"ranks", std::move(ranks)}};
}

HistoryPoint read_history(JsonReader& r, std::size_t& entries) {
  HistoryPoint point;
  point.step = r.count("step");
  point.steps = r.count("steps");
  point.step_seconds = r.number("stepSeconds", 0);
  const Json& ranks = r.any("ranks");
  const auto good = [](const Json& entry) {
    return entry.is_array() && entry.size() == 4 &&
           std::all_of(entry.begin(), entry.end(), [](const Json& n) { return n.is_number(); });
  };
  if (!ranks.is_array() || (entries += ranks.size()) > kMaxHistoryEntries ||
      !std::all_of(ranks.begin(), ranks.end(), good)) {
    r.fail("ranks", "want lists of four numbers, at most " + std::to_string(kMaxHistoryEntries) + " in all");
    return point;
  }
  for (const Json& entry : ranks) {
    const double rank = entry[0].get<double>();
    if (!(rank >= 0 && rank <= 65535)) r.fail("ranks", "there is no such rank");
    point.ranks.push_back({rank >= 0 && rank <= 65535 ? static_cast<int>(rank) : 0, entry[1].get<double>(),
                           entry[2].get<double>(), entry[3].get<double>()});
  }
  return point;
}

Json diagnosis_json(const Diagnosis& d) {
  Json losses = Json::object();
  put(losses, "compute", d.losses.compute);
  put(losses, "fixedCost", d.losses.fixed_cost);
  put(losses, "inputWait", d.losses.input_wait);
  put(losses, "imbalance", d.losses.imbalance);
  put(losses, "communication", d.losses.communication);
  Json json = {{"verdict", d.verdict}, {"message", d.message}, {"losses", losses}};
  if (d.remedies.empty()) return json;
  json["remedies"] = Json::array();
  for (const Remedy& remedy : d.remedies) json["remedies"].push_back(remedy_json(remedy));
  return json;
}

Diagnosis read_diagnosis(JsonReader r) {
  Diagnosis d;
  d.verdict = cut_text(r.string("verdict", "Measuring"), 64);
  d.message = cut_text(r.string("message"), kMaxTextBytes);
  JsonReader losses = r.object("losses");
  d.losses.compute = optional_number(losses, "compute");
  d.losses.fixed_cost = optional_number(losses, "fixedCost");
  d.losses.input_wait = optional_number(losses, "inputWait");
  d.losses.imbalance = optional_number(losses, "imbalance");
  d.losses.communication = optional_number(losses, "communication");
  for (JsonReader& remedy : r.array("remedies", kMaxRemedies)) d.remedies.push_back(read_remedy(remedy));
  return d;
}

Json balance_json(const Balance& b) {
  Json json = Json::object();
  put(json, "imbalanceRatio", b.imbalance_ratio);
  if (b.slowest_rank) json["slowestRank"] = *b.slowest_rank;
  put(json, "scalingEfficiency", b.scaling_efficiency);
  json["rebalances"] = b.rebalances;
  if (!b.mode.empty()) json["mode"] = b.mode;
  if (b.balanced) json["balanced"] = *b.balanced;
  if (!b.reason.empty()) json["reason"] = b.reason;
  put(json, "lossLeft", b.loss_left);
  return json;
}

Balance read_balance(JsonReader r) {
  Balance b;
  b.imbalance_ratio = optional_number(r, "imbalanceRatio");
  if (r.has("slowestRank")) b.slowest_rank = static_cast<int>(r.integer("slowestRank", 0, 0, 65535));
  b.scaling_efficiency = optional_number(r, "scalingEfficiency");
  b.rebalances = r.count("rebalances");
  b.mode = cut_text(r.string("mode"), 32);
  if (r.has("balanced")) b.balanced = r.boolean("balanced");
  b.reason = cut_text(r.string("reason"), kMaxTextBytes);
  b.loss_left = optional_number(r, "lossLeft");
  return b;
}

}  // namespace

const char* remedy_state_name(RemedyState state) {
  return kRemedyStates[static_cast<std::size_t>(state)].data();
}

const char* stage_name(JobStage stage) {
  return kStageNames[static_cast<std::size_t>(stage)].data();
}

Json to_json(const JobReport& report) {
  Json json = {{"jobUid", report.job_uid},
               {"attempt", report.attempt},
               {"coordinatorIncarnation", report.coordinator_incarnation},
               {"generation", report.generation},
               {"stage", stage_name(report.stage)},
               {"ranks", report.ranks},
               {"joined", report.joined},
               {"progress", progress_json(report.progress)},
               {"balance", balance_json(report.balance)},
               {"diagnosis", diagnosis_json(report.diagnosis)},
               {"checkpointStep", report.checkpoint_step},
               {"sharding", report.sharding},
               {"message", report.message}};
  if (report.failure) {
    json["failure"] = {{"rank", report.failure->rank},
                       {"exitCode", report.failure->exit_code},
                       {"reason", report.failure->reason}};
  }
  if (report.waterfall) json["waterfall"] = waterfall_json(*report.waterfall);
  if (!report.history.empty()) {
    json["history"] = Json::array();
    for (const HistoryPoint& point : report.history) json["history"].push_back(history_json(point));
  }
  json["seconds"] = Json::object();
  for (const auto& [cause, seconds] : report.productive_seconds) json["seconds"][cause] = seconds;
  json["replicas"] = Json::array();
  for (const ReplicaReport& replica : report.replicas) json["replicas"].push_back(replica_json(replica));
  return json;
}

Result<JobReport> decode_report(const Json& json) {
  JsonReader r(json, "report");
  JobReport report;
  report.job_uid = r.require("jobUid").string("jobUid");
  report.attempt = static_cast<std::uint32_t>(r.require("attempt").integer("attempt", 0, 0, 4294967295));
  report.coordinator_incarnation =
      static_cast<std::uint32_t>(r.integer("coordinatorIncarnation", 0, 0, 4294967295));
  report.generation = static_cast<std::uint32_t>(r.integer("generation", 0, 0, 4294967295));
  report.stage = static_cast<JobStage>(r.one_of("stage", kStageNames, 0));
  report.ranks = static_cast<int>(r.integer("ranks", 0, 0, 65536));
  report.joined = static_cast<int>(r.integer("joined", 0, 0, 65536));
  report.progress = read_progress(r.object("progress"));
  report.balance = read_balance(r.object("balance"));
  report.diagnosis = read_diagnosis(r.object("diagnosis"));
  report.checkpoint_step = r.count("checkpointStep");
  report.sharding = r.string("sharding");
  report.message = cut_text(r.string("message"), kMaxTextBytes);
  if (r.has("failure")) {
    JsonReader f = r.object("failure");
    report.failure = LastFailure{static_cast<int>(f.integer("rank", -1, -1, 65535)),
                                 static_cast<int>(f.integer("exitCode", 0, 0, 255)),
                                 cut_text(f.string("reason"), kMaxTextBytes)};
  }
  {
    JsonReader seconds = r.object("seconds");
    seconds.allow_unknown();
  }
  const Json& seconds = base::child(json, "seconds");
  if (seconds.is_object() && seconds.size() <= 64) {
    for (const auto& [cause, value] : seconds.items()) {
      if (value.is_number()) report.productive_seconds[cut_text(cause, 64)] = value.get<double>();
    }
  }
  if (r.has("waterfall")) report.waterfall = read_waterfall(r.object("waterfall"));
  std::size_t entries = 0;
  for (JsonReader& point : r.array("history", kMaxHistoryPoints))
    report.history.push_back(read_history(point, entries));
  for (JsonReader& replica : r.array("replicas", 65536)) report.replicas.push_back(read_replica(replica));
  base::Status status = r.finish();
  if (!status.ok()) return Error{ErrorCode::kCorruptData, status.error().message};
  return report;
}

std::string termination_message(const JobReport& full) {
  JobReport report = full;
  report.history.clear();
  std::string text = base::dump_json(to_json(report));
  // The words, the numbers that only explain, then replicas from the middle: the first ranks and the slowest
  // say most.
  for (std::size_t limit : {std::size_t{512}, std::size_t{128}}) {
    if (text.size() <= kMaxTerminationMessageBytes) return text;
    report.message = cut_text(report.message, limit);
    report.diagnosis.message = cut_text(report.diagnosis.message, limit);
    report.balance.reason = cut_text(report.balance.reason, limit);
    if (report.failure) report.failure->reason = cut_text(report.failure->reason, limit);
    text = base::dump_json(to_json(report));
  }
  if (text.size() > kMaxTerminationMessageBytes) {
    report.waterfall.reset();
    if (report.diagnosis.remedies.size() > 1) report.diagnosis.remedies.resize(1);
    text = base::dump_json(to_json(report));
  }
  const int slowest = report.balance.slowest_rank.value_or(-1);
  while (text.size() > kMaxTerminationMessageBytes && !report.replicas.empty()) {
    auto at = report.replicas.begin() + static_cast<std::ptrdiff_t>(report.replicas.size() / 2);
    if (at->rank == slowest && report.replicas.size() > 1)
      at = at == report.replicas.begin() ? at + 1 : at - 1;
    report.replicas.erase(at);
    text = base::dump_json(to_json(report));
  }
  return text;
}

std::string termination_message(const WorkerTermination& termination) {
  return base::dump_json({{"reason", cut_text(termination.reason, kMaxTextBytes)},
                          {"exitCode", termination.exit_code},
                          {"step", termination.step}});
}

WorkerTermination parse_worker_termination(const std::string& text) {
  WorkerTermination out;
  Result<Json> json = base::parse_json(text, {kMaxTerminationMessageBytes * 4, 4});
  if (json.ok() && json->is_object()) {
    JsonReader r(*json, "termination");
    out.reason = cut_text(r.string("reason"), kMaxTextBytes);
    out.exit_code = static_cast<int>(r.integer("exitCode", 0, 0, 255));
    out.step = r.count("step");
    if (r.finish().ok()) return out;
  }
  // dump_json replaces what is not UTF-8; its quotes are taken off again.
  std::string clean = base::dump_json(Json(text));
  out = {};
  out.reason = cut_text(clean.size() >= 2 ? clean.substr(1, clean.size() - 2) : clean, kMaxTextBytes);
  return out;
}

}  // namespace evenkeel::contract
