#include "trainer/local/local_manifest.h"

#include <algorithm>

#include "contract/job/quantity.h"
#include "contract/job/validate.h"

namespace evenkeel::trainer {
namespace {

using base::Json;

// The member object, made where it is absent.
Json& member(Json& object, const char* name) {
  if (!object.is_object()) object = Json::object();
  return object[name];
}

void write_over(Json& manifest, const LocalOptions& options) {
  Json& spec = member(manifest, "spec");
  if (!options.data.empty()) member(member(spec, "dataset"), "path") = options.data;
  if (!options.checkpoint_dir.empty()) member(member(spec, "checkpoint"), "path") = options.checkpoint_dir;
  if (options.workers) member(member(spec, "workers"), "replicas") = *options.workers;
  Json& training = member(spec, "training");
  if (options.epochs) {
    training.erase("steps");
    training["epochs"] = *options.epochs;
  }
  if (options.steps) {
    training.erase("epochs");
    training["steps"] = *options.steps;
  }
  if (options.global_batch) training["batchSize"] = Json{{"global", *options.global_batch}};
  if (options.seed) training["seed"] = *options.seed;
}

std::optional<double> cores(const Json& resources) {
  const Json& limits = base::child(resources, "limits");
  const auto at = limits.find("cpu");
  if (at == limits.end()) return std::nullopt;
  const auto quantity = contract::parse_quantity(*at);
  if (!quantity.ok()) return std::nullopt;  // validation has refused it before
  return *quantity;
}

}  // namespace

base::Result<contract::TrainingJob> local_job(Json manifest, const LocalOptions& options) {
  // With fewer workers than the manifest has, overrides of those that are left out mean nothing.
  if (options.workers && manifest.is_object()) {
    Json& workers = member(member(manifest, "spec"), "workers");
    if (workers.is_object() && workers.contains("overrides") && workers["overrides"].is_array()) {
      for (Json& override : workers["overrides"]) {
        if (!override.is_object() || !override.contains("replicas") || !override["replicas"].is_array())
          continue;
        Json kept = Json::array();
        for (const Json& replica : override["replicas"]) {
          if (!replica.is_number_integer() || replica.get<std::int64_t>() < *options.workers)
            kept.push_back(replica);
        }
        override["replicas"] = kept;
      }
      Json left = Json::array();
      for (const Json& override : workers["overrides"]) {
        if (!override.is_object() || !override.contains("replicas") || !override["replicas"].empty())
          left.push_back(override);
      }
      workers["overrides"] = left;
    }
  }
  write_over(manifest, options);
  return contract::decode_job(manifest);
}

double cpu_limit_of(const contract::TrainingJobSpec& spec, int replica) {
  double limit = cores(spec.workers.shape.resources).value_or(0);
  for (const contract::WorkerOverride& override : spec.workers.overrides) {
    if (std::find(override.replicas.begin(), override.replicas.end(), replica) == override.replicas.end())
      continue;
    limit = cores(override.shape.resources).value_or(limit);
  }
  return limit;
}

}  // namespace evenkeel::trainer
