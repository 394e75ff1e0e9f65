#include "trainer/local/local_status.h"

#include "contract/labels.h"

namespace evenkeel::trainer {
namespace {

using base::Json;

Json condition(const char* type, const std::string& reason, const std::string& message,
               const std::string& time) {
  return {{"type", type},
          {"status", "True"},
          {"reason", reason},
          {"message", message},
          {"lastTransitionTime", time}};
}

Json conditions(const contract::JobReport& report, const LocalOutcome& outcome) {
  Json list = Json::array();
  if (outcome.phase == "Succeeded")
    list.push_back(condition("Complete", "Completed", report.message, outcome.completion_time));
  if (outcome.phase == "Failed")
    list.push_back(condition("Failed", "TrainerFailed", report.message, outcome.completion_time));
  return list;
}

// The report's own members carry the names of the status; what only the report knows is left out.
Json replicas(const Json& report) {
  Json list = base::child(report, "replicas");
  if (!list.is_array()) return Json::array();
  for (Json& replica : list) {
    replica.erase("threads");
    replica.erase("cpuLimit");
  }
  return list;
}

Json balance(const Json& report) {
  Json balance = base::child(report, "balance");
  for (const char* name : {"mode", "balanced", "reason", "lossLeft"}) balance.erase(name);
  return balance;
}

Json diagnosis(const Json& report) {
  Json diagnosis = base::child(report, "diagnosis");
  if (!diagnosis.contains("remedies")) return diagnosis;
  for (Json& remedy : diagnosis["remedies"]) remedy.erase("predictedLossGain");
  return diagnosis;
}

Json progress(const contract::JobReport& report, const Json& json) {
  Json progress = base::child(json, "progress");
  progress.erase("etaSeconds");
  if (report.progress.target_steps > 0)
    progress["percent"] = 100 * report.progress.step / report.progress.target_steps;
  return progress;
}

Json time(const contract::JobReport& report) {
  Json unproductive = Json::object();
  double productive = 0, all = 0;
  for (const auto& [cause, seconds] : report.productive_seconds) {
    all += seconds;
    if (cause == "productive") {
      productive = seconds;
    } else {
      unproductive[cause] = seconds;
    }
  }
  return {{"activeSeconds", all}, {"productiveSeconds", productive}, {"unproductiveSeconds", unproductive}};
}

}  // namespace

Json job_object(const contract::TrainingJob& job, const contract::JobReport& report,
                const LocalOutcome& outcome) {
  const Json json = contract::to_json(report);
  Json status;
  status["observedGeneration"] = 1;
  status["phase"] = outcome.phase;
  status["attempt"] = report.attempt;
  status["restarts"] = {{"total", outcome.restarts}, {"countedTowardsMax", outcome.restarts}};
  status["startTime"] = outcome.start_time;
  if (!outcome.completion_time.empty()) status["completionTime"] = outcome.completion_time;
  const contract::WorkersSpec& workers = job.spec.workers;
  const int succeeded = outcome.phase == "Succeeded" ? workers.replicas : 0;
  const int ready = report.joined / workers.devices_per_replica;
  status["workers"] = {{"desired", workers.replicas},
                       {"succeeded", succeeded},
                       {"readyText", std::to_string(ready) + "/" + std::to_string(workers.replicas)}};
  status["progress"] = progress(report, json);
  status["time"] = time(report);
  status["balance"] = balance(json);
  status["diagnosis"] = diagnosis(json);
  status["replicas"] = replicas(json);
  if (report.failure) {
    status["lastFailure"] = {{"rank", report.failure->rank},
                             {"attempt", report.attempt},
                             {"exitCode", report.failure->exit_code},
                             {"reason", report.failure->reason}};
  }
  status["conditions"] = conditions(report, outcome);
  Json object;
  object["apiVersion"] = contract::kApiVersion;
  object["kind"] = contract::kKind;
  object["metadata"] = {
      {"name", job.meta.name}, {"namespace", job.meta.name_space}, {"uid", job.meta.uid}, {"generation", 1}};
  object["spec"] = job.spec_json;
  object["status"] = std::move(status);
  return object;
}

}  // namespace evenkeel::trainer
