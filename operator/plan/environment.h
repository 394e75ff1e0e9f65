// The variables that differ from pod to pod (contract/env.h), so that the trainer and a user's own image find
// their place. Called by operator/render, which puts them after the user's. Pure.
#pragma once

#include <string>
#include <vector>

#include "operator/plan/plan.h"

namespace evenkeel::oper {

struct EnvironmentVariable {
  std::string name;
  std::string value;
  std::string field_path;  // downward API instead of `value`, where not empty
};

// Linux refuses to start a program with one variable of 128 KiB or more: beyond this size (about a thousand
// workers) TF_CONFIG is left out rather than making a pod that cannot start.
inline constexpr std::size_t kMaxTfConfigBytes = 96u << 10;

// In a fixed order, no name twice.
std::vector<EnvironmentVariable> environment_of(const JobPlan& plan, const PodPlan& pod);

// TensorFlow's description of the cluster: workers only, the same on all ranks but for the index.
std::string tf_config(const JobPlan& plan, int worker);

// A name that a user's env must not set.
bool is_reserved_variable(const std::string& name);

}  // namespace evenkeel::oper
