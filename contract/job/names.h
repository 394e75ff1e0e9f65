// Names of everything a job owns. One function each; nothing is ever cut. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace evenkeel::contract {

enum class Role { kWorker, kCoordinator, kReducer, kServer };
const char* role_name(Role role);  // "worker", ...
base::Result<Role> parse_role(const std::string& name);

// The longest name a job may have, so that "<job>-coordinator-0" and "<job>-reducer-4095" fit a DNS label
// (63) and the Secret's suffix too. names_test derives it.
inline constexpr int kMaxJobNameLength = 49;

// <job>-<role>-<rank>-<incarnation>
std::string pod_name(const std::string& job, Role role, int rank, std::int64_t incarnation);
// <job>-<role>-<rank>: stable over incarnations, resolves under the job's Service.
std::string host_name(const std::string& job, Role role, int rank);
// What a pod's name says of it, without the job: "worker-2-7".
struct PodIdentity {
  Role role = Role::kWorker;
  int rank = 0;
  std::int64_t incarnation = 0;
  bool operator==(const PodIdentity&) const = default;
};
std::string identity_text(const PodIdentity& identity);
std::optional<PodIdentity> parse_identity(const std::string& text);
// Nothing if the name is not one of this job's pods.
std::optional<PodIdentity> parse_pod_name(const std::string& job, const std::string& name);

std::string service_name(const std::string& job);                           // <job>
std::string config_map_name(const std::string& job, std::int64_t attempt);  // <job>-config-<attempt>
std::string wanted_map_name(const std::string& job, std::int64_t attempt);  // <job>-wanted-<attempt>
std::string secret_name(const std::string& job,
                        const std::string& job_uid);  // <job>-key-<first 8 of the UID>
// <hostname>.<service>.<namespace>.svc
std::string dns_name(const std::string& job, const std::string& name_space, Role role, int rank);

}  // namespace evenkeel::contract
