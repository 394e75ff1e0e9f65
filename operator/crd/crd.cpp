#include "operator/crd/crd.h"

#include "contract/job/schema.h"
#include "contract/labels.h"
#include "operator/crd/schema_print.h"
#include "operator/crd/yaml.h"

namespace evenkeel::oper {
namespace {

using base::Json;

struct Column {
  const char* name;
  const char* type;
  const char* path;
  int priority;  // 0: always; 1: with -o wide
  const char* description;
};

constexpr Column kColumns[] = {
    {"Status", "string", ".status.phase", 0, "The job's state in one word."},
    {"Progress", "integer", ".status.progress.percent", 0, "Percent of the training that is done."},
    {"Ready", "string", ".status.workers.readyText", 0, "Workers that have joined, and those wanted."},
    {"Samples/s", "number", ".status.progress.samplesPerSecond", 0,
     "Training samples per second over all ranks."},
    {"Imbalance", "number", ".status.balance.imbalanceRatio", 0, "Slowest over mean own work of a step, less 1; 0 is even."},
    {"Restarts", "integer", ".status.restarts.total", 0, "Incidents that led to a restart."},
    {"ETA", "string", ".status.progress.eta", 0, "Time left."},
    {"Age", "date", ".metadata.creationTimestamp", 0, "Time since the job was made."},
    {"Verdict", "string", ".status.diagnosis.verdict", 1, "Why N ranks are not N times faster."},
    {"Efficiency", "number", ".status.balance.scalingEfficiency", 1,
     "Speed over ranks times the speed of one."},
    {"Loss", "number", ".status.progress.loss", 1, "Mean loss of the last training steps."},
    {"Straggler", "integer", ".status.balance.slowestRank", 1, "Rank below balance.stragglerThreshold, or that others wait for."},
    {"Queue", "string", ".spec.scheduling.queue", 1, "Queue that admits the job."},
};

Json columns() {
  Json out = Json::array();
  for (const Column& column : kColumns) {
    Json item = {{"name", column.name},
                 {"type", column.type},
                 {"jsonPath", column.path},
                 {"description", column.description}};
    if (column.priority > 0) item["priority"] = column.priority;
    out.push_back(item);
  }
  return out;
}

// metadata is not part of the schema, so a field path may not point there: the messages name it.
Json root_rules() {
  std::vector<contract::FieldRule> rules = contract::object_rules();
  for (contract::FieldRule& rule : rules) rule.field_path.clear();
  return print_rules(rules);
}

Json root_schema() {
  Json out = Json::object();
  out["type"] = "object";
  out["description"] = "A distributed training: what to train, on which data, with how many workers.";
  out["required"] = Json::array({"spec"});
  out["properties"]["apiVersion"] = {{"type", "string"}};
  out["properties"]["kind"] = {{"type", "string"}};
  out["properties"]["metadata"] = {{"type", "object"}};
  out["properties"]["spec"] = print_field(contract::spec_schema());
  out["properties"]["status"] = print_field(contract::status_schema());
  out["x-kubernetes-validations"] = root_rules();
  return out;
}

Json version() {
  Json out = Json::object();
  out["name"] = contract::kVersion;
  out["served"] = true;
  out["storage"] = true;
  out["additionalPrinterColumns"] = columns();
  out["subresources"]["status"] = Json::object();
  out["subresources"]["scale"] = {{"specReplicasPath", ".spec.workers.replicas"},
                                  {"statusReplicasPath", ".status.workers.running"},
                                  {"labelSelectorPath", ".status.workers.selector"}};
  out["schema"]["openAPIV3Schema"] = root_schema();
  return out;
}

}  // namespace

Json make_crd() {
  Json out = Json::object();
  out["apiVersion"] = "apiextensions.k8s.io/v1";
  out["kind"] = "CustomResourceDefinition";
  out["metadata"]["name"] = std::string(contract::kPlural) + "." + contract::kGroup;
  Json& spec = out["spec"];
  spec["group"] = contract::kGroup;
  spec["scope"] = "Namespaced";
  spec["names"] = {{"kind", contract::kKind},
                   {"listKind", std::string(contract::kKind) + "List"},
                   {"plural", contract::kPlural},
                   {"singular", "trainingjob"},
                   {"shortNames", Json::array({"tjob"})},
                   {"categories", Json::array({"training"})}};
  spec["versions"] = Json::array({version()});
  return out;
}

std::string crd_yaml() {
  return "# Generated from contract/job by `evenkeel-operator crd`; change it there, then run that again.\n" +
         to_yaml(make_crd());
}

}  // namespace evenkeel::oper
