// Workers as real processes of evenkeel-trainer, with real files, signals and exit codes. The coordinator
// runs in this process, on a free port.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <future>

#include "base/hash.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "contract/env.h"
#include "contract/job/validate.h"
#include "contract/report.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/coordinator/coordinator_server.h"
#include "trainer/loop/training_fixture.h"

namespace evenkeel::trainer {
namespace {

using namespace testing;
using base::Json;

const char kKey[] = "0123456789abcdef0123456789abcdef";

struct Folder {
  Folder() {
    char name[] = "/tmp/evenkeel-processes-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Folder() { (void)base::real_files().remove_all(path); }
  std::string path;
};

void write(const std::string& path, const std::string& content) {
  const std::string_view pieces[] = {content};
  ASSERT_TRUE(base::real_files().write_synced(path, pieces).ok()) << path;
}

// The row set of the fixture, on disk.
void write_row_set(const std::string& folder, std::uint32_t d, int classes) {
  base::FakeFiles files;
  put_row_set(files, "/data", d, classes);
  ASSERT_TRUE(base::real_files().make_directories(folder).ok());
  for (const std::string& path : files.paths()) {
    write(folder + path.substr(path.find_last_of('/')), *files.read(path, 1 << 30));
  }
}

Json spec_json(const std::string& folder, int ranks, int epochs, int batch, int every_steps) {
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
  Job(const Folder& folder, const Json& spec, std::uint32_t attempt) : folder_(folder.path) {
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
    for (int rank = 0; rank < config.ranks; ++rank) start(rank);
  }

  // A test that has failed must not wait for a job that goes on.
  ~Job() {
    workers.clear();
    stop_.wake();
  }

  void start(int rank) {
    base::SubprocessOptions options;
    options.argv = {std::string(EVENKEEL_BIN_DIR) + "/evenkeel-trainer", "worker"};
    options.env = {{contract::kEnvConfig, folder_ + "/trainer.json"},
                   {contract::kEnvKeyFile, folder_ + "/key"},
                   {contract::kEnvRole, "worker"},
                   {contract::kEnvRank, std::to_string(rank)},
                   {contract::kEnvPodIp, "127.0.0.1"},
                   {contract::kEnvMetricsPort, "0"},
                   {contract::kEnvTerminationLog, folder_ + "/termination-" + std::to_string(rank)}};
    options.stderr_file = folder_ + "/log-" + std::to_string(rank);
    auto process = base::Subprocess::start(options);
    ASSERT_TRUE(process.ok()) << process.error().message;
    workers.push_back(std::move(*process));
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

  std::vector<base::Subprocess> workers;

 private:
  std::string folder_;
  base::Waker stop_;
  std::future<int> coordinator_;  // waits for its thread
};

CheckpointSearch newest(const Folder& folder) {
  const auto found = find_checkpoint(base::real_files(), folder.path + "/checkpoints",
                                     "11111111-2222-3333-4444-555555555555");
  EXPECT_TRUE(found.ok());
  return found.ok() ? *found : CheckpointSearch{};
}
std::int64_t newest_step(const Folder& folder) {
  const CheckpointSearch found = newest(folder);
  return found.newest ? found.newest->manifest.step : 0;
}

// Until a checkpoint of `step` or later is there. It is looked for, not waited for by the clock.
void wait_for_checkpoint(const Folder& folder, std::int64_t step) {
  const auto deadline = base::real_clock().now() + std::chrono::seconds(60);
  while (newest_step(folder) < step) {
    ASSERT_LT(base::real_clock().now(), deadline) << "no checkpoint of step " << step;
    base::real_clock().sleep_for(std::chrono::milliseconds(2));
  }
}

std::string bytes_of_newest(const Folder& folder, const char* file) {
  const CheckpointSearch found = newest(folder);
  EXPECT_TRUE(found.newest.has_value());
  return *base::real_files().read(found.newest->directory + "/" + file, 1 << 24);
}

TEST(Processes, four_ranks_train_to_the_end_and_all_exit_0) {
  Folder folder;
  write_row_set(folder.path + "/data", 103, 4);
  Job job(folder, spec_json(folder.path, 4, 2, 4, 10), 1);
  for (std::size_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(job.exit_of(rank), 0) << job.log(static_cast<int>(rank));
  EXPECT_EQ(job.coordinator_exit(), 0);
  const auto found = newest(folder);
  ASSERT_TRUE(found.newest.has_value());
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(job.log(rank).find("\"level\":\"error\""), std::string::npos) << job.log(rank);
  }
  const auto report = contract::decode_report(
      *base::parse_json(*base::real_files().read(folder.path + "/termination-coordinator", 8192)));
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->progress.step, 52);
  std::int64_t consumed = 0;
  for (const auto& replica : report->replicas) consumed += replica.consumed;
  EXPECT_EQ(consumed, 206);
}

TEST(Processes, a_killed_rank_ends_the_attempt_and_the_next_one_has_the_bits_of_an_undisturbed_run) {
  Folder undisturbed, disturbed;
  for (const Folder* folder : {&undisturbed, &disturbed}) write_row_set(folder->path + "/data", 96, 4);
  // 1,200 steps of 8; a checkpoint at the end of all.
  Job whole(undisturbed, spec_json(undisturbed.path, 2, 100, 8, 50), 1);
  EXPECT_EQ(whole.exit_of(0), 0) << whole.log(0);
  EXPECT_EQ(whole.exit_of(1), 0);
  EXPECT_EQ(whole.coordinator_exit(), 0);

  {
    Job first(disturbed, spec_json(disturbed.path, 2, 100, 8, 50), 1);
    wait_for_checkpoint(disturbed, 100);
    first.workers[1].signal(SIGKILL);
    EXPECT_EQ(first.exit_of(1), 128 + SIGKILL);
    EXPECT_EQ(first.exit_of(0), 75) << first.log(0);
    EXPECT_EQ(first.coordinator_exit(), 75);
  }
  ASSERT_LT(newest_step(disturbed), 1200);
  Job second(disturbed, spec_json(disturbed.path, 2, 100, 8, 50), 2);
  EXPECT_EQ(second.exit_of(0), 0) << second.log(0);
  EXPECT_EQ(second.exit_of(1), 0);
  EXPECT_EQ(second.coordinator_exit(), 0);
  EXPECT_EQ(newest_step(disturbed), 1200);
  for (const char* file : {contract::kWeightsFile, contract::kOptimizerFile}) {
    EXPECT_EQ(bytes_of_newest(disturbed, file), bytes_of_newest(undisturbed, file)) << file;
  }
}

TEST(Processes, sigterm_makes_a_checkpoint_and_exit_143) {
  Folder folder;
  write_row_set(folder.path + "/data", 96, 4);
  Job job(folder, spec_json(folder.path, 2, 100000, 8, 1000000), 1);
  // All pods of a suspended job get the signal; a rank that trains has said "ready".
  const auto deadline = base::real_clock().now() + std::chrono::seconds(60);
  while (job.log(0).find("\"step\":50,") == std::string::npos) {
    ASSERT_LT(base::real_clock().now(), deadline) << job.log(0);
    base::real_clock().sleep_for(std::chrono::milliseconds(5));
  }
  for (auto& worker : job.workers) worker.signal(SIGTERM);
  EXPECT_EQ(job.exit_of(0), 143) << job.log(0);
  EXPECT_EQ(job.exit_of(1), 143) << job.log(1);
  EXPECT_GE(newest_step(folder), 50);
  (void)job.coordinator_exit();
}

TEST(Processes, TR_43_killed_at_any_moment_every_start_finds_a_checkpoint_and_no_step_goes_back) {
  Folder folder;
  write_row_set(folder.path + "/data", 96, 4);
  std::int64_t reached = 0;
  for (int round = 1; round <= 8; ++round) {
    Job job(folder, spec_json(folder.path, 2, 100000, 8, 1), static_cast<std::uint32_t>(round));
    // Another moment each time: so many steps after the start.
    wait_for_checkpoint(folder, reached + 1 + round * 3 % 5);
    const std::int64_t seen = newest_step(folder);
    for (auto& worker : job.workers) worker.signal(SIGKILL);
    for (std::size_t rank = 0; rank < 2; ++rank) (void)job.exit_of(rank);
    (void)job.coordinator_exit();
    const std::int64_t found = newest_step(folder);
    EXPECT_GE(found, seen);
    EXPECT_GE(found, reached);
    reached = found;
    const auto entries = base::real_files().list(folder.path + "/checkpoints");
    ASSERT_TRUE(entries.ok());
    int complete = 0;
    for (const auto& entry : *entries)
      complete += contract::parse_checkpoint_directory_name(entry.name).ok() ? 1 : 0;
    EXPECT_LE(complete, 4) << "three kept, and one that was just renamed when the kill came";
  }
}

TEST(Processes, a_bad_configuration_is_exit_64_and_names_the_variable) {
  base::SubprocessOptions options;
  options.argv = {std::string(EVENKEEL_BIN_DIR) + "/evenkeel-trainer", "worker"};
  Folder folder;
  options.stderr_file = folder.path + "/log";
  auto process = base::Subprocess::start(options);
  ASSERT_TRUE(process.ok());
  const auto code = process->wait(base::real_clock().now() + std::chrono::seconds(20), nullptr);
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(*code, 64);
  EXPECT_NE(base::real_files().read(folder.path + "/log", 1 << 20)->find("EVENKEEL_CONFIG"),
            std::string::npos);
}

}  // namespace
}  // namespace evenkeel::trainer
