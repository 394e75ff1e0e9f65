#include "contract/job/names.h"

namespace evenkeel::contract {

const char* role_name(Role role) {
  switch (role) {
    case Role::kWorker:
      return "worker";
    case Role::kCoordinator:
      return "coordinator";
    case Role::kReducer:
      return "reducer";
    case Role::kServer:
      return "server";
  }
  return "worker";
}

base::Result<Role> parse_role(const std::string& name) {
  for (Role role : {Role::kWorker, Role::kCoordinator, Role::kReducer, Role::kServer}) {
    if (name == role_name(role)) return role;
  }
  return base::Error{base::ErrorCode::kInvalidInput,
                     "role \"" + name + "\" is not known; use worker, coordinator, reducer or server"};
}

std::string host_name(const std::string& job, Role role, int rank) {
  return job + "-" + role_name(role) + "-" + std::to_string(rank);
}

std::string pod_name(const std::string& job, Role role, int rank, std::int64_t incarnation) {
  return host_name(job, role, rank) + "-" + std::to_string(incarnation);
}

std::string service_name(const std::string& job) {
  return job;
}

std::string config_map_name(const std::string& job, std::int64_t attempt) {
  return job + "-config-" + std::to_string(attempt);
}

std::string secret_name(const std::string& job, const std::string& job_uid) {
  return job + "-key-" + job_uid.substr(0, 8);
}

std::string dns_name(const std::string& job, const std::string& name_space, Role role, int rank) {
  return host_name(job, role, rank) + "." + service_name(job) + "." + name_space + ".svc";
}

}  // namespace evenkeel::contract
