// Jobs as real processes of evenkeel-trainer, with real files, signals and exit codes; the coordinator runs in the
// test's process, on a free port. Each pod is one `worker`, or where the spec has several devices for each replica one
// `launch`. Tests only.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "contract/commands.h"
#include "contract/env.h"
#include "contract/job/validate.h"
#include "contract/report.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/coordinator/coordinator_server.h"
#include "trainer/loop/training_fixture.h"

namespace evenkeel::trainer::testing {

using base::Json;

inline const char kKey[] = "0123456789abcdef0123456789abcdef";

struct Folder {
  Folder() {
    char name[] = "/tmp/evenkeel-processes-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Folder() { (void)base::real_files().remove_all(path); }
  std::string path;
};

inline void write(const std::string& path, const std::string& content) {
  const std::string_view pieces[] = {content};
  ASSERT_TRUE(base::real_files().write_synced(path, pieces).ok()) << path;
}

// The row set of the fixture, on disk.
inline void write_row_set(const std::string& folder, std::uint32_t d, int classes) {
  base::FakeFiles files;
  put_row_set(files, "/data", d, classes);
  ASSERT_TRUE(base::real_files().make_directories(folder).ok());
  for (const std::string& path : files.paths()) {
    write(folder + path.substr(path.find_last_of('/')), *files.read(path, 1 << 30));
  }
}

inline Json spec_json(const std::string& folder, int ranks, int epochs, int batch, int every_steps) {
  Json spec;
  spec["workers"] = {{"replicas", ranks}};
  spec["model"] = {{"layers", Json::array({{{"type", "flatten"}},
                                           {{"type", "dense"}, {"units", 32}, {"activation", "relu"}},
                                           {{"type", "dense"}, {"units", 4}}})}};
  spec["dataset"] = {
      {"format", "idx"}, {"path", folder + "/data"}, {"split", {{"train", "train"}, {"eval", "test"}}}};
  spec["training"] = {{"epochs", epochs},
                      {"batchSize", {{"global", batch}}},
                      {"optimizer", {{"type", "sgd"}, {"learningRate", 0.05}, {"momentum", 0.9}}}};
  spec["checkpoint"] = {{"path", folder + "/checkpoints"}, {"everySteps", every_steps}, {"keep", 3}};
  spec["restart"] = {{"failureDetectionSeconds", 2}};
  return contract::with_defaults(spec);
}

class Job {
 public:
  Job(const Folder& folder, const Json& spec, std::uint32_t attempt, std::map<std::string, std::string> more_env = {})
      : folder_(folder.path), more_env_(std::move(more_env)) {
    contract::TrainerConfig config;
    config.job_name = "job";
    config.job_namespace = "default";
    config.job_uid = "11111111-2222-3333-4444-555555555555";
    config.attempt = attempt;
    config.coordinator_host = "127.0.0.1";
    config.spec_json = spec;
    auto decoded = contract::decode_spec(spec);
    EXPECT_TRUE(decoded.ok()) << decoded.error().message;
    config.spec = *decoded;
    config.ranks = config.spec.ranks();
    CoordinatorOptions options;
    options.config = config;
    options.key = kKey;
    options.bind_address = "127.0.0.1";
    options.termination_log = folder_ + "/termination-coordinator";
    options.stop = &stop_;
    std::promise<int> listening;
    options.on_listening = [&listening](std::uint16_t control, std::uint16_t) {
      listening.set_value(control);
    };
    auto port = listening.get_future();
    coordinator_ = std::async(std::launch::async, [options] { return run_coordinator(options); });
    config.coordinator_port = port.get();
    write(folder_ + "/trainer.json", base::dump_json(contract::to_json(config)));
    write(folder_ + "/key", kKey);
    ranks_of_each_ = config.spec.workers.devices_per_replica;
    for (int pod = 0; pod < config.spec.workers.replicas; ++pod) start(pod);
  }

  // A test that has failed must not wait for a job that goes on.
  ~Job() {
    workers.clear();
    stop_.wake();
  }

  // A later process of the same pod takes its place.
  void start(int pod, std::int64_t incarnation = 1) {
    base::SubprocessOptions options;
    options.argv = {std::string(EVENKEEL_BIN_DIR) + "/evenkeel-trainer",
                    ranks_of_each_ > 1 ? contract::kLaunchCommand : "worker"};
    options.env = {{contract::kEnvConfig, folder_ + "/trainer.json"},
                   {contract::kEnvKeyFile, folder_ + "/key"},
                   {contract::kEnvRole, "worker"},
                   {contract::kEnvRank, std::to_string(pod * ranks_of_each_)},
                   {contract::kEnvIncarnation, std::to_string(incarnation)},
                   {contract::kEnvPodUid, "pod-" + std::to_string(pod) + "-" + std::to_string(incarnation)},
                   {contract::kEnvPodIp, "127.0.0.1"},
                   {contract::kEnvMetricsPort, std::to_string(metrics_port(pod))},
                   {"TMPDIR", folder_},
                   {contract::kEnvTerminationLog, folder_ + "/termination-" + std::to_string(pod)}};
    for (const auto& [name, value] : more_env_) options.env[name] = value;
    options.stderr_file = folder_ + "/log-" + std::to_string(pod);
    auto process = base::Subprocess::start(options);
    ASSERT_TRUE(process.ok()) << process.error().message;
    if (static_cast<std::size_t>(pod) < workers.size()) {
      workers[static_cast<std::size_t>(pod)] = std::move(*process);
    } else {
      workers.push_back(std::move(*process));
    }
  }

  int exit_of(std::size_t rank) {
    const auto code = workers[rank].wait(base::real_clock().now() + std::chrono::seconds(60), nullptr);
    EXPECT_TRUE(code.ok()) << "rank " << rank << " still runs";
    return code.ok() ? *code : -1;
  }
  int coordinator_exit() { return coordinator_.get(); }
  std::string log(int rank) {
    const auto text = base::real_files().read(folder_ + "/log-" + std::to_string(rank), 1 << 24);
    return text.ok() ? *text : "";
  }

  std::string termination(int pod) {
    const auto text = base::real_files().read(folder_ + "/termination-" + std::to_string(pod), 1 << 16);
    return text.ok() ? *text : "";
  }
  // Of a pod with several ranks; chosen when first asked for. A worker of its own takes any.
  int metrics_port(int pod) {
    if (ranks_of_each_ == 1) return 0;
    int& port = metrics_ports_[pod];
    if (port == 0) port = base::Listener::open({"127.0.0.1", 0})->port();
    return port;
  }

  std::vector<base::Subprocess> workers;  // by pod

 private:
  std::string folder_;
  std::map<std::string, std::string> more_env_;
  int ranks_of_each_ = 1;
  std::map<int, int> metrics_ports_;
  base::Waker stop_;
  std::future<int> coordinator_;  // waits for its thread
};

inline CheckpointSearch newest(const Folder& folder) {
  const auto found = find_checkpoint(base::real_files(), folder.path + "/checkpoints",
                                     "11111111-2222-3333-4444-555555555555");
  EXPECT_TRUE(found.ok());
  return found.ok() ? *found : CheckpointSearch{};
}
inline std::int64_t newest_step(const Folder& folder) {
  const CheckpointSearch found = newest(folder);
  return found.newest ? found.newest->manifest.step : 0;
}

// Until a checkpoint of `step` or later is there. It is looked for, not waited for by the clock.
inline void wait_for_checkpoint(const Folder& folder, std::int64_t step) {
  const auto deadline = base::real_clock().now() + std::chrono::seconds(60);
  while (newest_step(folder) < step) {
    ASSERT_LT(base::real_clock().now(), deadline) << "no checkpoint of step " << step;
    base::real_clock().sleep_for(std::chrono::milliseconds(2));
  }
}

inline std::string bytes_of_newest(const Folder& folder, const char* file) {
  const CheckpointSearch found = newest(folder);
  EXPECT_TRUE(found.newest.has_value());
  return *base::real_files().read(found.newest->directory + "/" + file, 1 << 24);
}

}  // namespace evenkeel::trainer::testing
