// The parts of the tree, one function for each schema_*.cpp, put together by schema.cpp. Internal to
// contract/job.
#pragma once

#include <string>
#include <vector>

#include "contract/job/schema.h"

namespace evenkeel::contract {

// schema_pod.cpp: Kubernetes' own types, as far as a job may use them.
Field resources_field(const std::string& owner);
Field pod_options_field(const std::string& owner);
Field volume_source_field(const std::string& description);
// schema_dataset.cpp
FieldRule plain_path_rule(const char* name);

// schema_workers.cpp
Field strategy_field();
Field workers_field();
Field coordinator_field();
Field reducers_field();
Field parameter_servers_field();

// schema_model.cpp, schema_dataset.cpp, schema_training.cpp
Field model_field();
Field dataset_field();
Field training_field();

// schema_operations.cpp: everything about running a job, not about what it computes.
std::vector<Field> operations_fields();

// rules_update.cpp: what may change, and when.
std::vector<FieldRule> update_rules();

}  // namespace evenkeel::contract
