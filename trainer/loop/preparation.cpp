#include "trainer/loop/preparation.h"

#include <utility>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "trainer/loop/job_state.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

// On a loopback address all ranks are on this machine and share its cores; in a pod those of the pod do.
int sharers(const Settings& settings) {
  return settings.bind_address.starts_with("127.") ? settings.config.ranks : settings.ranks_in_pod();
}

// Beginning anew beside checkpoints that nobody can read would prune what could still be rescued.
Status check_checkpoints(base::Files& files, const Settings& settings, const CheckpointSearch& found) {
  const std::string& path = settings.config.spec.checkpoint.path;
  if (!found.newest && found.damaged > 0) {
    return Error{ErrorCode::kCorruptData,
                 "checkpoint.path " + path + ": none of its checkpoints verifies (" + found.skipped.front() +
                     "); mend or move them, or name another folder to begin anew"};
  }
  if (settings.rank != 0) return {};
  const Status made = files.make_directories(path);
  if (made.ok()) return {};
  return Error{ErrorCode::kIo, "checkpoint.path " + path + ": " + made.error().message +
                                   "; a job that could not keep its result does not begin"};
}

Result<CheckpointSearch> look_for_checkpoints(base::Files& files, const Settings& settings) {
  const std::string& path = settings.config.spec.checkpoint.path;
  if (path.empty()) return CheckpointSearch();
  EVENKEEL_ASSIGN(CheckpointSearch found, find_checkpoint(files, path, settings.config.job_uid));
  for (const std::string& skipped : found.skipped) base::log_warning("checkpoint skipped: " + skipped);
  EVENKEEL_TRY(check_checkpoints(files, settings, found));
  return found;
}

Result<ReplicaOptions> replica_options(base::Files& files, const Settings& settings, int threads) {
  const int ranks = sharers(settings);
  const MemoryLimit memory = read_memory_limit(files);
  ReplicaOptions options;
  options.threads = options.data_threads = threads;
  // Kernels may divide their sums by threads, and another rank count would mean other threads.
  if (settings.config.spec.training.reproducible) options.threads = 1;
  options.memory_limit_bytes = memory.bytes / static_cast<std::uint64_t>(ranks);
  options.memory_limit_source = memory.source + (ranks > 1 ? " for " + std::to_string(ranks) + " ranks" : "");
  options.micro_batch = settings.micro_batch;
  EVENKEEL_ASSIGN(options.injection, Injection::parse(settings.inject, settings.rank, settings.config.ranks));
  if (options.injection.any())
    base::log_warning("this rank is made slow or wrong on purpose", {{"inject", settings.inject}});
  return options;
}

// What must be the same beside the model: optimizer, batch, seeds, data.
std::string configuration_hash(const Settings& settings) {
  const base::Json& spec = settings.config.spec_json;
  return base::sha256_hex(base::dump_json(base::child(spec, "training")) +
                          base::dump_json(base::child(spec, "dataset")));
}

}  // namespace

Result<Prepared> prepare(base::Files& files, const Settings& settings) {
  Prepared made;
  made.cpu = read_cpu_limit(files);
  made.throttled_at_start = read_cpu_throttling(files);
  made.threads = choose_threads(made.cpu, usable_cores(), sharers(settings));
  made.data_threads = made.threads.threads;
  base::log_info("compute threads", {{"threads", made.threads.threads},
                                     {"source", made.threads.source},
                                     {"cpuLimit", made.cpu.cores}});
  EVENKEEL_ASSIGN(const ReplicaOptions options, replica_options(files, settings, made.threads.threads));
  EVENKEEL_ASSIGN(made.replica, Replica::make(files, settings.config.spec, options));
  const Replica& replica = *made.replica;
  if (replica.init_from()) base::log_info(to_text(*replica.init_from()));
  for (const std::string& warning : made.replica->engine().warnings()) base::log_warning(warning);
  EVENKEEL_ASSIGN(made.checkpoints, look_for_checkpoints(files, settings));
  base::log_info("model and data ready",
                 {{"planHash", replica.plan_hash()},
                  {"parameters", made.replica->engine().plan().parameter_count()},
                  {"trainSamples", replica.train().samples},
                  {"evalSamples", replica.eval_samples()},
                  {"skippedRecords", replica.skipped_records()},
                  {"microBatch", replica.micro_batch()},
                  {"checkpointStep", made.checkpoints.newest ? made.checkpoints.newest->manifest.step : 0}});
  return made;
}

contract::Join introduction(base::Files& files, const Settings& settings, const Prepared& prepared,
                            const std::string& data_address) {
  const Replica& replica = *prepared.replica;
  contract::Join join;
  for (const LayerHash& layer : replica.layer_hashes()) join.plan_parts.emplace_back(layer.layer, layer.hash);
  const std::string configuration = configuration_hash(settings);
  join.plan_parts.emplace_back("configuration", configuration);
  join.plan_hash = base::sha256_hex(replica.plan_hash() + configuration);
  join.byte_order = "little";  // the frames' too; other machines are refused at compile time by contract/wire
  join.data_address = data_address;
  join.pod = settings.pod_name;
  join.node = settings.node_name;
  join.train_samples = replica.train().samples;
  join.eval_samples = replica.eval_samples();
  join.file_samples = replica.sharding().file_samples;
  join.checkpoint = to_message(prepared.checkpoints);
  join.threads = prepared.threads.threads;
  join.cpu_limit = prepared.cpu.cores / settings.ranks_in_pod();
  join.cores = usable_cores();
  join.device_model = read_cpu_model(files);
  join.data_threads = prepared.data_threads;
  join.free_memory_bytes = static_cast<double>(read_free_memory(files)) / sharers(settings);
  join.decoded_bytes = static_cast<double>(replica.decoded_bytes());
  join.version = EVENKEEL_VERSION;
  return join;
}

void add_quota_periods(base::Files& files, const std::optional<CpuThrottling>& at_start,
                       contract::Heartbeat& beat) {
  const auto throttling = read_cpu_throttling(files);
  if (!throttling || !at_start) return;
  beat.quota_periods = static_cast<std::int64_t>(throttling->periods - at_start->periods);
  beat.throttled_periods = static_cast<std::int64_t>(throttling->throttled - at_start->throttled);
}

}  // namespace evenkeel::trainer
