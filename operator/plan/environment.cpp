#include "operator/plan/environment.h"

#include <algorithm>

#include "contract/env.h"
#include "contract/labels.h"

namespace evenkeel::oper {
namespace {

using contract::Role;

constexpr char kOwnPrefix[] = "EVENKEEL_";

std::string path_in(const char* folder, const char* file) {
  return std::string(folder) + "/" + file;
}

void add_own(std::vector<EnvironmentVariable>& env, const JobPlan& plan, const PodPlan& pod) {
  const int rank = pod.role == Role::kWorker ? pod.rank * plan.ranks_per_pod : 0;
  env.push_back({contract::kEnvConfig, path_in(contract::kConfigMountPath, contract::kConfigFile), ""});
  env.push_back({contract::kEnvKeyFile, path_in(contract::kKeyMountPath, contract::kKeyFile), ""});
  env.push_back({contract::kEnvRole, contract::role_name(pod.role), ""});
  env.push_back({contract::kEnvRank, std::to_string(rank), ""});
  env.push_back({contract::kEnvIncarnation, std::to_string(pod.incarnation), ""});
  if (pod.role == Role::kCoordinator && !plan.wanted_map.empty())
    env.push_back({contract::kEnvWantedFile, path_in(contract::kWantedMountPath, contract::kWantedFile), ""});
  env.push_back({contract::kEnvPodName, "", "metadata.name"});
  env.push_back({contract::kEnvPodUid, "", "metadata.uid"});
  env.push_back({contract::kEnvPodIp, "", "status.podIP"});
  env.push_back({contract::kEnvNodeName, "", "spec.nodeName"});
}

void add_for_foreign_programs(std::vector<EnvironmentVariable>& env, const JobPlan& plan,
                              const PodPlan& pod) {
  const std::vector<PodPlan> workers = workers_of(plan);
  const std::string master = workers.empty() ? "" : workers.front().address;
  const std::string port = std::to_string(contract::kDataPort);
  const std::string node_rank = std::to_string(pod.rank);
  const auto pet = [](const char* name) { return std::string(contract::kEnvPetPrefix) + name; };
  env.push_back({contract::kEnvPlainRank, std::to_string(pod.rank * plan.ranks_per_pod), ""});
  env.push_back({contract::kEnvWorldSize, std::to_string(plan.ranks), ""});
  env.push_back({contract::kEnvNodeRank, node_rank, ""});
  env.push_back({contract::kEnvLocalRank, "0", ""});
  env.push_back({contract::kEnvMasterAddr, master, ""});
  env.push_back({contract::kEnvMasterPort, port, ""});
  env.push_back({pet("NNODES"), std::to_string(workers.size()), ""});
  env.push_back({pet("NPROC_PER_NODE"), std::to_string(plan.ranks_per_pod), ""});
  env.push_back({pet("NODE_RANK"), node_rank, ""});
  env.push_back({pet("MASTER_ADDR"), master, ""});
  env.push_back({pet("MASTER_PORT"), port, ""});
  std::string tensorflow = tf_config(plan, pod.rank);
  if (tensorflow.size() <= kMaxTfConfigBytes)
    env.push_back({contract::kEnvTfConfig, std::move(tensorflow), ""});
}

}  // namespace

std::vector<EnvironmentVariable> environment_of(const JobPlan& plan, const PodPlan& pod) {
  std::vector<EnvironmentVariable> env;
  add_own(env, plan, pod);
  if (pod.role == Role::kWorker) add_for_foreign_programs(env, plan, pod);
  return env;
}

std::string tf_config(const JobPlan& plan, int worker) {
  base::Json addresses = base::Json::array();
  for (const PodPlan& pod : workers_of(plan)) {
    addresses.push_back(pod.address + ":" + std::to_string(contract::kDataPort));
  }
  base::Json config;
  config["cluster"]["worker"] = std::move(addresses);
  config["task"] = {{"type", "worker"}, {"index", worker}};
  return base::dump_json(config);
}

bool is_reserved_variable(const std::string& name) {
  static const std::vector<std::string> kReserved = {
      contract::kEnvPlainRank,  contract::kEnvWorldSize,  contract::kEnvNodeRank, contract::kEnvLocalRank,
      contract::kEnvMasterAddr, contract::kEnvMasterPort, contract::kEnvTfConfig};
  return name.starts_with(kOwnPrefix) || name.starts_with(contract::kEnvPetPrefix) ||
         std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end();
}

}  // namespace evenkeel::oper
