#include "trainer/app/explain_view.h"

#include <cmath>
#include <iomanip>
#include <sstream>
#include <utility>

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

Result<contract::JobReport> decoded(const Json& json, const std::string& what) {
  Result<contract::JobReport> report = contract::decode_report(json);
  if (report.ok()) return report;
  return Error{ErrorCode::kInvalidInput, what + " cannot be read: " + report.error().message};
}

Json without(Json object, std::initializer_list<const char*> names) {
  if (!object.is_object()) return Json::object();
  for (const char* name : names) object.erase(name);
  return object;
}

const char* stage_of(const std::string& phase) {
  if (phase == "Succeeded") return "Completed";
  if (phase == "Failed") return "Failed";
  if (phase == "Suspended") return "Stopped";
  return phase == "Running" ? "Running" : "Rendezvous";
}

// A status holds the same numbers under the same names, but for the waterfall and the history.
Result<contract::JobReport> of_training_job(const Json& job) {
  const Json& status = base::child(job, "status");
  const Json& workers = base::at_path(job, {"spec", "workers"});
  const std::int64_t ranks =
      base::int_at(workers, "replicas", 0) * base::int_at(workers, "devicesPerReplica", 1);
  Json report = {{"jobUid", base::string_at(base::child(job, "metadata"), "uid", "unknown")},
                 {"attempt", base::int_at(status, "attempt", 0)},
                 {"stage", stage_of(base::string_at(status, "phase"))},
                 {"ranks", ranks},
                 {"joined", ranks}};
  report["progress"] =
      without(base::child(status, "progress"), {"eta", "estimatedCompletionTime", "percent"});
  report["balance"] = base::child(status, "balance");
  report["diagnosis"] = base::child(status, "diagnosis");
  if (status.contains("replicas")) report["replicas"] = status["replicas"];
  return decoded(report, "the status of the TrainingJob");
}

const std::pair<const char*, const char*> kLabels[] = {
    {"useful", "useful work"},       {"usefulAndFixed", "computing"},     {"fixed", "fixed cost of a step"},
    {"capacity", "slower hardware"}, {"wait", "waiting for the slowest"}, {"input", "waiting for data"},
    {"rest", "communication"},
};

std::string label_of(const std::string& key) {
  for (const auto& [name, label] : kLabels) {
    if (key == name) return label;
  }
  return key;
}

void add_losses(const contract::Losses& losses, Explained& explained) {
  const auto add = [&](const char* key, const char* label, const std::optional<double>& share) {
    if (share) explained.terms.push_back({key, label, std::nullopt, *share, std::nullopt});
  };
  add("useful", "computing", losses.compute);
  add("fixed", "fixed cost of a step", losses.fixed_cost);
  add("wait", "imbalance", losses.imbalance);
  add("input", "waiting for data", losses.input_wait);
  add("rest", "communication", losses.communication);
}

}  // namespace

Result<contract::JobReport> report_of(const Json& json) {
  if (!json.is_object()) return Error{ErrorCode::kInvalidInput, "this is no report: not a JSON object"};
  if (json.contains("explain")) return decoded(json["explain"], "its member explain");
  if (json.contains("jobUid")) return decoded(json, "the report");
  if (json.contains("status") && json.contains("spec")) return of_training_job(json);
  if (json.contains("job") && json["job"].is_object() && json["job"].contains("status"))
    return of_training_job(json["job"]);
  return Error{ErrorCode::kInvalidInput,
               "this is no report: want what GET /v1/report of a coordinator answers, the file of local "
               "--report, or a TrainingJob with a status"};
}

Explained explained(const contract::JobReport& report) {
  Explained result;
  result.ranks = report.ranks;
  if (!report.waterfall || report.waterfall->step_seconds <= 0) {
    add_losses(report.diagnosis.losses, result);
    return result;
  }
  const contract::WaterfallReport& w = *report.waterfall;
  result.ranks = w.ranks;
  result.in_ranks = w.speedup.has_value();
  for (const contract::WaterfallTerm& term : w.terms) {
    ExplainedTerm one{term.name == "usefulAndFixed" ? "useful" : term.name, label_of(term.name), term.seconds,
                      term.seconds / w.step_seconds, term.ranks};
    if (term.name == "useful" && w.speedup) one.ranks = w.speedup;
    result.in_ranks = result.in_ranks && one.ranks;
    result.terms.push_back(std::move(one));
  }
  result.baseline =
      w.baseline == "measured" ? "One rank alone was measured before the job began."
      : w.baseline == "fitted"
          ? "What one rank would do alone is fitted from steps with shares of different size."
          : "There is no baseline: what a step costs whatever its size is not told from useful work.";
  return result;
}

std::string fixed_digits(double value, int digits) {
  if (!std::isfinite(value) || std::abs(value) > 1e15) return "?";
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits)
      << (std::abs(value) < 0.5 * std::pow(10, -digits) ? 0 : value);
  return out.str();
}

std::string percent_text(double share, int digits) {
  return fixed_digits(share * 100, digits) + "%";
}

const char* state_text(contract::RemedyState state) {
  switch (state) {
    case contract::RemedyState::kProposed:
      return "proposed";
    case contract::RemedyState::kApplied:
      return "applied";
    case contract::RemedyState::kReverted:
      return "taken back";
    case contract::RemedyState::kNotAllowed:
      return "not allowed";
  }
  return "?";
}

}  // namespace evenkeel::trainer
