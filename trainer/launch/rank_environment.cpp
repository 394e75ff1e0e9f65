#include "trainer/launch/rank_environment.h"

#include "contract/env.h"

namespace evenkeel::trainer {

std::string termination_file(const RankPlace& place) {
  return place.directory + "/rank-" + std::to_string(place.rank()) + ".end";
}

std::string metrics_file(const RankPlace& place) {
  return place.directory + "/rank-" + std::to_string(place.rank()) + ".port";
}

std::map<std::string, std::string> rank_environment(const RankPlace& place, const Environment& pod) {
  using namespace contract;
  const std::string rank = std::to_string(place.rank());
  std::map<std::string, std::string> env;
  env[kEnvRank] = env[kEnvPlainRank] = rank;
  env[kEnvLocalRank] = std::to_string(place.local_rank);
  env[kEnvRestarts] = std::to_string(place.restarts);
  env[kEnvTerminationLog] = termination_file(place);
  env[kEnvMetricsFile] = metrics_file(place);
  env[kEnvDataPort] = "0";  // they share an address
  // Threads that wait in a loop for the next parallel region take the core from the rank beside them.
  if (!pod("OMP_WAIT_POLICY") && !pod("GOMP_SPINCOUNT")) env["OMP_WAIT_POLICY"] = "passive";
  if (std::string trace = pod(kEnvTrace).value_or(""); !trace.empty()) {
    const std::size_t at = trace.find(kRankInName);
    env[kEnvTrace] = at == std::string::npos ? trace + "." + rank : trace.replace(at, sizeof kRankInName - 1, rank);
  }
  return env;
}

}  // namespace evenkeel::trainer
