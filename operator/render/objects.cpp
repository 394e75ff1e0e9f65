#include "operator/render/objects.h"

#include "contract/labels.h"
#include "operator/render/metadata.h"

namespace evenkeel::oper {
namespace {

Json port(const char* name, int number) {
  return {{"name", name}, {"port", number}, {"targetPort", number}, {"protocol", "TCP"}};
}

}  // namespace

Json render_service(const contract::TrainingJob& job, const JobPlan& plan) {
  Json service = {{"apiVersion", "v1"}, {"kind", "Service"}};
  service["metadata"] = child_metadata(job.meta, plan.service, 0);
  Json& spec = service["spec"];
  spec["clusterIP"] = "None";
  // Peers must find each other before anyone can be ready.
  spec["publishNotReadyAddresses"] = true;
  spec["selector"] = {{contract::kLabelJobUid, job.meta.uid}, {contract::kLabelCurrent, "true"}};
  spec["ports"] = Json::array({port(contract::kMetricsPortName, job.spec.metrics_port),
                               port("control", contract::kControlPort), port("data", contract::kDataPort)});
  return service;
}

Json render_config_map(const contract::TrainingJob& job, const JobPlan& plan) {
  Json config_map = {{"apiVersion", "v1"}, {"kind", "ConfigMap"}};
  config_map["metadata"] = child_metadata(job.meta, plan.config_map, plan.attempt);
  config_map["immutable"] = true;
  config_map["data"][contract::kConfigFile] = base::dump_json(contract::to_json(plan.config), 2);
  return config_map;
}

Json render_wanted_map(const contract::TrainingJob& job, const JobPlan& plan) {
  Json config_map = {{"apiVersion", "v1"}, {"kind", "ConfigMap"}};
  config_map["metadata"] = child_metadata(job.meta, plan.wanted_map, plan.attempt);
  config_map["data"][contract::kWantedFile] = std::to_string(plan.workers);
  return config_map;
}

Json render_secret(const contract::TrainingJob& job, const JobPlan& plan) {
  Json secret = {{"apiVersion", "v1"}, {"kind", "Secret"}};
  secret["metadata"] = child_metadata(job.meta, plan.secret, 0);
  secret["type"] = "Opaque";
  secret["immutable"] = true;
  secret["data"][contract::kKeyFile] = "";
  return secret;
}

}  // namespace evenkeel::oper
