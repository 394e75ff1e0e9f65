#include "contract/trainer_config.h"

#include <utility>

#include "base/json_reader.h"
#include "contract/job/validate.h"

namespace evenkeel::contract {

using base::Error;
using base::ErrorCode;
using base::JsonReader;
using base::Result;

namespace {
constexpr int kConfigVersion = 1;
}

Json to_json(const TrainerConfig& config) {
  return {{"version", config.version},
          {"job", {{"name", config.job_name}, {"namespace", config.job_namespace}, {"uid", config.job_uid}}},
          {"attempt", config.attempt},
          {"coordinator",
           {{"host", config.coordinator_host},
            {"port", config.coordinator_port},
            {"incarnation", config.coordinator_incarnation}}},
          {"ranks", config.ranks},
          {"spec", config.spec_json}};
}

Result<TrainerConfig> decode_trainer_config(const Json& json) {
  TrainerConfig config;
  JsonReader reader(json, "trainer configuration");
  config.version = static_cast<int>(reader.require("version").integer("version", 0));
  if (config.version != kConfigVersion) {
    return Error{ErrorCode::kMismatch, "trainer configuration: version is " + std::to_string(config.version) +
                                           ", this trainer reads version " + std::to_string(kConfigVersion) +
                                           "; use the trainer image that belongs to the operator"};
  }
  {
    JsonReader job = reader.object("job");
    config.job_name = job.require("name").string("name");
    config.job_namespace = job.string("namespace");
    config.job_uid = job.require("uid").string("uid");
  }
  config.attempt = static_cast<std::uint32_t>(reader.require("attempt").integer("attempt", 1, 0, 4294967295));
  {
    JsonReader coordinator = reader.object("coordinator");
    config.coordinator_host = coordinator.require("host").string("host");
    config.coordinator_port = static_cast<int>(coordinator.require("port").integer("port", 0, 1, 65535));
    config.coordinator_incarnation =
        static_cast<std::uint32_t>(coordinator.integer("incarnation", 1, 0, 4294967295));
  }
  config.ranks = static_cast<int>(reader.require("ranks").integer("ranks", 1, 1, 65536));
  config.spec_json = reader.require("spec").any("spec");
  EVENKEEL_TRY(reader.finish());
  Result<TrainingJobSpec> spec = decode_spec(config.spec_json);
  if (!spec.ok()) return base::with_context("trainer configuration", std::move(spec).error());
  config.spec = std::move(spec).value();
  if (config.ranks != config.spec.ranks()) {
    return Error{ErrorCode::kInvalidInput, "trainer configuration: ranks is " + std::to_string(config.ranks) +
                                               ", but spec.workers asks for " +
                                               std::to_string(config.spec.ranks())};
  }
  return config;
}

}  // namespace evenkeel::contract
