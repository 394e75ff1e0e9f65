#include "trainer/config/settings.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "base/json.h"
#include "contract/env.h"

namespace evenkeel::trainer {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr std::size_t kMaxConfigBytes = 1u << 20;  // a ConfigMap holds no more
constexpr std::size_t kMaxKeyBytes = 4096;
constexpr std::size_t kMinKeyBytes = 16;
constexpr std::int64_t kMaxRank = 4096 * 64 - 1;  // workers.replicas x workers.devicesPerReplica
constexpr std::int64_t kMaxIncarnation = (std::int64_t{1} << 53) / (Settings::kMaxRestartsInPod + 1) - 1;

Error bad(const std::string& name, const std::string& what) {
  return {ErrorCode::kInvalidInput, "environment variable " + name + ": " + what +
                                        " (it is set by the operator or by 'evenkeel-trainer local')"};
}

Result<std::string> required(const Environment& environment, const char* name) {
  std::optional<std::string> value = environment(name);
  if (!value || value->empty()) return bad(name, "is not set");
  return std::move(*value);
}

Result<std::int64_t> integer(const Environment& environment, const char* name, std::int64_t fallback,
                             std::int64_t max) {
  const std::optional<std::string> text = environment(name);
  if (!text || text->empty()) return fallback;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < 0 || value > max) {
    return bad(name, "'" + *text + "' is not an integer from 0 to " + std::to_string(max));
  }
  return value;
}

Result<contract::TrainerConfig> read_config(const std::string& path, base::Files& files) {
  Result<std::string> text = files.read(path, kMaxConfigBytes);
  if (!text.ok()) return base::with_context("trainer configuration", std::move(text).error());
  Result<base::Json> json = base::parse_json(*text);
  if (!json.ok()) return base::with_context(path, std::move(json).error());
  Result<contract::TrainerConfig> config = contract::decode_trainer_config(*json);
  if (!config.ok()) return base::with_context(path, std::move(config).error());
  return config;
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

Result<Settings> read_settings(const Environment& environment, base::Files& files) {
  Settings out;
  EVENKEEL_ASSIGN(const std::string config_path, required(environment, contract::kEnvConfig));
  EVENKEEL_ASSIGN(out.config, read_config(config_path, files));

  EVENKEEL_ASSIGN(const std::string key_path, required(environment, contract::kEnvKeyFile));
  EVENKEEL_ASSIGN(out.key, files.read(key_path, kMaxKeyBytes));
  if (out.key.size() < kMinKeyBytes)
    return bad(contract::kEnvKeyFile, key_path + " holds " + std::to_string(out.key.size()) +
                                          " bytes, a key has at least " + std::to_string(kMinKeyBytes));

  EVENKEEL_ASSIGN(const std::string role, required(environment, contract::kEnvRole));
  EVENKEEL_ASSIGN(out.role, contract::parse_role(role));
  EVENKEEL_ASSIGN(const std::int64_t rank, integer(environment, contract::kEnvRank, 0, kMaxRank));
  out.rank = static_cast<int>(rank);
  // A job that grows keeps the configuration that its attempt began with.
  const contract::WorkersSpec& workers = out.config.spec.workers;
  const int most = std::max(out.config.ranks, workers.most() * workers.devices_per_replica);
  if (out.role == contract::Role::kWorker && out.rank >= most) {
    return bad(contract::kEnvRank,
               "rank " + std::to_string(rank) + " of a job with " + std::to_string(most) + " ranks");
  }
  EVENKEEL_ASSIGN(out.incarnation, integer(environment, contract::kEnvIncarnation, 1, kMaxIncarnation));
  EVENKEEL_ASSIGN(out.restarts, integer(environment, contract::kEnvRestarts, 0, Settings::kMaxRestartsInPod));
  EVENKEEL_ASSIGN(const std::int64_t metrics_port,
                  integer(environment, contract::kEnvMetricsPort, out.config.spec.metrics_port, 65535));
  EVENKEEL_ASSIGN(const std::int64_t data_port, integer(environment, contract::kEnvDataPort, 0, 65535));
  out.metrics_port = static_cast<int>(metrics_port);
  out.data_port = static_cast<int>(data_port);

  auto text = [&environment](const char* name, std::string fallback) {
    return environment(name).value_or(std::move(fallback));
  };
  out.pod_name =
      text(contract::kEnvPodName, std::string(contract::role_name(out.role)) + "-" + std::to_string(rank));
  out.pod_uid = text(contract::kEnvPodUid, "");
  out.node_name = text(contract::kEnvNodeName, "");
  out.bind_address = text(contract::kEnvPodIp, "127.0.0.1");
  out.trace = text(contract::kEnvTrace, "");
  EVENKEEL_ASSIGN(out.micro_batch, integer(environment, contract::kEnvMicroBatch, 0, std::int64_t{1} << 24));
  out.termination_log = text(contract::kEnvTerminationLog, "/dev/termination-log");
  out.metrics_file = text(contract::kEnvMetricsFile, "");
  out.wanted_file = text(contract::kEnvWantedFile, "");
  out.inject = text(contract::kEnvInject, "");
  const std::string shared_memory = text(contract::kEnvSharedMemory, "on");
  if (shared_memory != "on" && shared_memory != "off")
    return bad(contract::kEnvSharedMemory, "'" + shared_memory + "' is neither on nor off");
  out.shared_memory = shared_memory == "on";
  return out;
}

}  // namespace evenkeel::trainer
