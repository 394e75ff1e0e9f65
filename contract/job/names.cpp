#include "contract/job/names.h"

#include <charconv>
#include <limits>

namespace evenkeel::contract {
namespace {

// Digits alone, without a zero in front: one number has one text.
std::optional<std::int64_t> plain_number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text != std::to_string(value) || value < 0)
    return std::nullopt;
  return value;
}

}  // namespace

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

std::string identity_text(const PodIdentity& identity) {
  return std::string(role_name(identity.role)) + "-" + std::to_string(identity.rank) + "-" +
         std::to_string(identity.incarnation);
}

std::optional<PodIdentity> parse_identity(const std::string& text) {
  const std::size_t second = text.rfind('-');
  if (second == std::string::npos || second == 0) return std::nullopt;
  const std::size_t first = text.rfind('-', second - 1);
  if (first == std::string::npos) return std::nullopt;
  const auto role = parse_role(text.substr(0, first));
  const auto rank = plain_number(text.substr(first + 1, second - first - 1));
  const auto incarnation = plain_number(text.substr(second + 1));
  if (!role.ok() || !rank || !incarnation || *rank > std::numeric_limits<int>::max()) return std::nullopt;
  return PodIdentity{*role, static_cast<int>(*rank), *incarnation};
}

std::optional<PodIdentity> parse_pod_name(const std::string& job, const std::string& name) {
  if (!name.starts_with(job + "-")) return std::nullopt;
  return parse_identity(name.substr(job.size() + 1));
}

std::string service_name(const std::string& job) {
  return job;
}

std::string config_map_name(const std::string& job, std::int64_t attempt) {
  return job + "-config-" + std::to_string(attempt);
}

std::string wanted_map_name(const std::string& job, std::int64_t attempt) {
  return job + "-wanted-" + std::to_string(attempt);
}

std::string secret_name(const std::string& job, const std::string& job_uid) {
  return job + "-key-" + job_uid.substr(0, 8);
}

std::string dns_name(const std::string& job, const std::string& name_space, Role role, int rank) {
  return host_name(job, role, rank) + "." + service_name(job) + "." + name_space + ".svc";
}

}  // namespace evenkeel::contract
