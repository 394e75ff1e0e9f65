// The trainer's configuration: one JSON file for all pods of an attempt (a ConfigMap in the cluster, a file
// in trainer/local), plus the variables of env.h that differ from pod to pod. Writer: operator/render,
// trainer/local. Reader: trainer/config. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "contract/job/spec.h"

namespace evenkeel::contract {

struct TrainerConfig {
  int version = 1;  // another one is refused by name
  std::string job_name;
  std::string job_namespace;
  std::string job_uid;
  std::uint32_t attempt = 1;
  std::uint32_t coordinator_incarnation = 1;
  std::string coordinator_host;  // name or address
  int coordinator_port = 9401;
  int ranks = 1;
  Json spec_json;        // with defaults
  TrainingJobSpec spec;  // the same, decoded
};

Json to_json(const TrainerConfig& config);
// Unknown members, wrong types, an invalid spec: kInvalidInput naming the member.
base::Result<TrainerConfig> decode_trainer_config(const Json& json);

}  // namespace evenkeel::contract
