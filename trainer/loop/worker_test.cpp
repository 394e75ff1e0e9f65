// Whole workers against a real coordinator, as threads of one process over a file system in memory.
#include "trainer/loop/worker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "base/http.h"
#include "contract/report.h"
#include "trainer/coordinator/coordinator_server.h"
#include "trainer/loop/training_fixture.h"

namespace evenkeel::trainer {
namespace {

using namespace testing;
using contract::ExitCode;

contract::TrainingJobSpec job(int ranks) {
  contract::TrainingJobSpec spec = job_over("/data", ranks, 8);
  spec.model.layers = {layer("flatten"), layer("dense", 17, true, "relu"), layer("dense", 4)};
  spec.training.epochs = 3;
  spec.checkpoint.path = "/checkpoints";
  spec.checkpoint.every_steps = 5;
  spec.restart.failure_detection_seconds = 2;
  spec.restart.rules = {{{64, 65, 69, 76, 78}, false, contract::RestartAction::kFailJob}};
  return spec;
}

struct Stop {
  base::Waker waker;
  std::atomic<bool> requested{false};
  void request() {
    requested = true;
    waker.wake();
  }
};

// A job's processes as threads. Each worker may be given a spec of its own.
class Job {
 public:
  Job(base::FakeFiles& files, contract::TrainingJobSpec spec, std::uint32_t attempt = 1) : files_(files) {
    config_.job_name = "job";
    config_.job_namespace = "default";
    config_.job_uid = "uid";
    config_.attempt = attempt;
    config_.coordinator_host = "127.0.0.1";
    config_.ranks = spec.ranks();
    config_.spec = std::move(spec);
    CoordinatorOptions options;
    options.config = config_;
    options.key = kKey;
    options.bind_address = "127.0.0.1";
    options.stop = &coordinator_stop_;
    std::promise<std::pair<int, int>> listening;
    auto ports = listening.get_future();
    options.on_listening = [&listening](std::uint16_t control, std::uint16_t metrics) {
      listening.set_value({control, metrics});
    };
    coordinator_ = std::async(std::launch::async, [options] { return run_coordinator(options); });
    std::tie(config_.coordinator_port, coordinator_metrics_port) = ports.get();
  }

  // A test that has failed must not wait for a job that goes on.
  ~Job() {
    stop.request();
    coordinator_stop_.wake();
  }

  void start(int rank) { start(rank, config_.spec); }
  void start(int rank, const contract::TrainingJobSpec& spec) {
    Settings settings;
    settings.config = config_;
    settings.config.spec = spec;
    settings.key = kKey;
    settings.rank = rank;
    settings.bind_address = "127.0.0.1";
    settings.pod_name = "job-worker-" + std::to_string(rank);
    settings.termination_log = "/termination-" + std::to_string(rank);
    workers_.push_back(std::async(std::launch::async, [this, settings] {
      WorkerDependencies dependencies{&files_, &stop.waker, [this] { return stop.requested.load(); }};
      return run_worker(settings, dependencies);
    }));
  }
  void start_all() {
    files_.put("/termination-dir", "");
    for (int rank = 0; rank < config_.ranks; ++rank) start(rank);
  }
  ExitCode worker_exit(std::size_t index) { return workers_[index].get(); }
  int coordinator_exit() { return coordinator_.get(); }
  contract::WorkerTermination termination(int rank) {
    const auto text = files_.read("/termination-" + std::to_string(rank), 4096);
    EXPECT_TRUE(text.ok());
    return text.ok() ? contract::parse_worker_termination(*text) : contract::WorkerTermination{};
  }

  Stop stop;
  int coordinator_metrics_port = 0;

 private:
  static constexpr char kKey[] = "0123456789abcdef0123456789abcdef";
  base::FakeFiles& files_;
  contract::TrainerConfig config_;
  base::Waker coordinator_stop_;
  std::future<int> coordinator_;
  std::vector<std::future<ExitCode>> workers_;
};

std::int64_t newest_step(base::FakeFiles& files) {
  const auto found = find_checkpoint(files, "/checkpoints", "uid");
  EXPECT_TRUE(found.ok());
  return found.ok() && found->newest ? found->newest->manifest.step : 0;
}

TEST(Worker, a_job_of_several_ranks_trains_evaluates_checkpoints_and_ends_with_0) {
  for (const int ranks : {1, 3}) {
    base::FakeFiles files;
    put_row_set(files, "/data", 20, 4);  // 3 steps an epoch, 9 in all
    Job job_run(files, job(ranks));
    job_run.start_all();
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(job_run.worker_exit(static_cast<std::size_t>(rank)), ExitCode::kDone);
      EXPECT_EQ(job_run.termination(rank).exit_code, 0);
      EXPECT_EQ(job_run.termination(rank).step, 9);
    }
    EXPECT_EQ(job_run.coordinator_exit(), 0);
    const auto found = find_checkpoint(files, "/checkpoints", "uid");
    ASSERT_TRUE(found.ok() && found->newest);
    EXPECT_EQ(found->newest->manifest.samples, found->newest->manifest.step == 9 ? 60 : 36);

    // The same weights as without coordinator, files and metrics.
    contract::TrainingJobSpec spec = job(ranks);
    GroupOptions options;
    options.max_steps = static_cast<std::size_t>(found->newest->manifest.step);
    const auto expected = train_group(files, spec, options);
    auto replica = Replica::make(files, spec, {});
    ASSERT_TRUE(replica.ok());
    ASSERT_TRUE(
        load_checkpoint(files, *found->newest, (*replica)->weights(), (*replica)->optimizer_state()).ok());
    EXPECT_EQ((*replica)->parameter_hash(), expected[0].hash);
  }
}

TEST(Worker, asked_to_stop_it_checkpoints_ends_with_143_and_goes_on_where_it_was) {
  base::FakeFiles files;
  put_row_set(files, "/data", 200, 4);
  contract::TrainingJobSpec spec = job(2);
  spec.training.epochs = 400;  // 10,000 steps: long enough to be stopped in the middle
  spec.checkpoint.every_steps = 100000;
  Job first(files, spec);
  first.start_all();
  // Stop once the coordinator has seen a step.
  for (;;) {
    const auto answer =
        base::http_get("127.0.0.1", static_cast<std::uint16_t>(first.coordinator_metrics_port),
                       contract::kReportPath, std::chrono::seconds(5), contract::kMaxReportBytes);
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    const auto report = contract::decode_report(*base::parse_json(answer->body));
    ASSERT_TRUE(report.ok());
    if (report->progress.step > 0) break;
  }
  first.stop.request();
  EXPECT_EQ(first.worker_exit(0), ExitCode::kStopped) << first.termination(0).reason;
  EXPECT_EQ(first.worker_exit(1), ExitCode::kStopped);
  const std::int64_t stopped_at = newest_step(files);
  EXPECT_GT(stopped_at, 0);
  EXPECT_EQ(first.termination(0).step, stopped_at);
  (void)first.coordinator_exit();

  spec.training.epochs.reset();
  spec.training.steps = stopped_at + 7;
  Job second(files, spec, 2);
  second.start_all();
  EXPECT_EQ(second.worker_exit(0), ExitCode::kDone) << second.termination(0).reason;
  EXPECT_EQ(second.worker_exit(1), ExitCode::kDone);
  EXPECT_EQ(second.termination(1).step, stopped_at + 7);
  EXPECT_EQ(second.coordinator_exit(), 0);
}

TEST(Worker, TR_21_numbers_that_are_not_finite_end_the_job_with_76_and_keep_the_last_good_checkpoint) {
  base::FakeFiles files;
  put_row_set(files, "/data", 40, 10);
  contract::TrainingJobSpec spec = job(2);
  spec.model.layers = {layer("flatten"), layer("dense", 64), layer("dense", 10)};
  spec.training.optimizer.learning_rate = 1e30;
  spec.checkpoint.every_steps = 1;
  Job job_run(files, spec);
  job_run.start_all();
  const ExitCode a = job_run.worker_exit(0), b = job_run.worker_exit(1);
  EXPECT_TRUE(a == ExitCode::kNumerical || b == ExitCode::kNumerical);
  EXPECT_NE(job_run.termination(a == ExitCode::kNumerical ? 0 : 1).reason.find("step 2"), std::string::npos);
  EXPECT_EQ(job_run.coordinator_exit(), 76);
  EXPECT_EQ(newest_step(files), 1);
}

TEST(Worker, TR_29_a_rank_with_another_model_is_refused_with_78_and_the_right_one_may_take_its_place) {
  base::FakeFiles files;
  put_row_set(files, "/data", 20, 4);
  Job job_run(files, job(2));
  job_run.start(0);
  contract::TrainingJobSpec other = job(2);
  other.model.layers[1].units = 16;
  job_run.start(1, other);
  // Which of the two is refused depends on who came first; with rank 0 and 1 alone there is no majority but
  // the first.
  const ExitCode refused = job_run.worker_exit(1);
  EXPECT_EQ(refused, ExitCode::kMismatch) << job_run.termination(1).reason;
  EXPECT_NE(job_run.termination(1).reason.find("dense_1"), std::string::npos)
      << job_run.termination(1).reason;
  job_run.start(1);
  EXPECT_EQ(job_run.worker_exit(0), ExitCode::kDone);
  EXPECT_EQ(job_run.worker_exit(2), ExitCode::kDone);
  EXPECT_EQ(job_run.coordinator_exit(), 0);
}

TEST(Worker, bad_data_and_a_missing_folder_end_with_65_and_say_where) {
  base::FakeFiles files;
  Job missing(files, job(1));
  missing.start_all();
  EXPECT_EQ(missing.worker_exit(0), ExitCode::kBadData);
  EXPECT_NE(missing.termination(0).reason.find("/data"), std::string::npos);
  put_row_set(files, "/data", 20, 4);
  files.put("/data/train-labels-idx1-ubyte", big_endian(0x801) + big_endian(20) + std::string(19, '\0'));
  missing.start(0);
  EXPECT_EQ(missing.worker_exit(1), ExitCode::kBadData);
  EXPECT_NE(missing.termination(0).reason.find("train-labels"), std::string::npos)
      << missing.termination(0).reason;
  // The right data, and the same coordinator goes on.
  put_row_set(files, "/data", 20, 4);
  missing.start(0);
  EXPECT_EQ(missing.worker_exit(2), ExitCode::kDone);
  EXPECT_EQ(missing.coordinator_exit(), 0);
}

// Files of CIFAR, so that there are several of them.
contract::TrainingJobSpec file_job(base::FakeFiles& files, int ranks, const std::vector<int>& sizes) {
  std::int64_t id = 0;
  for (std::size_t file = 0; file < sizes.size(); ++file) {
    std::string content;
    for (int i = 0; i < sizes[file]; ++i, ++id)
      content += static_cast<char>(id % 10) + std::string(3072, static_cast<char>(id * 5 % 251));
    files.put("/data/data_batch_" + std::to_string(file + 1) + ".bin", content);
  }
  files.put("/data/test_batch.bin", std::string(3073, '\0'));
  contract::TrainingJobSpec spec = job(ranks);
  spec.dataset.format = "cifar10";
  spec.dataset.sharding = contract::ShardingPolicy::kFile;
  spec.model.layers = {layer("flatten"), layer("dense", 10)};
  spec.training.optimizer.learning_rate = 0.001;
  return spec;
}

TEST(Worker, a_job_of_ranks_that_own_files_is_stopped_in_an_epoch_and_ends_with_the_same_weights) {
  std::string hashes[2];
  for (const bool disturbed : {false, true}) {
    base::FakeFiles files;
    contract::TrainingJobSpec spec = file_job(files, 3, {20, 7, 33, 1});
    spec.training.epochs.reset();
    spec.checkpoint.every_steps = 1000;
    for (const std::int64_t steps : disturbed ? std::vector<std::int64_t>{5, 11, 20} : std::vector<std::int64_t>{20}) {
      spec.training.steps = steps;
      Job job_run(files, spec, static_cast<std::uint32_t>(steps));
      job_run.start_all();
      for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(job_run.worker_exit(rank), ExitCode::kDone);
      EXPECT_EQ(job_run.coordinator_exit(), 0);
    }
    const auto found = find_checkpoint(files, "/checkpoints", "uid");
    ASSERT_TRUE(found.ok() && found->newest);
    EXPECT_EQ(found->newest->manifest.step, 20);
    EXPECT_FALSE(found->newest->manifest.owned.empty());
    auto replica = Replica::make(files, spec, {});
    ASSERT_TRUE(replica.ok());
    ASSERT_TRUE(
        load_checkpoint(files, *found->newest, (*replica)->weights(), (*replica)->optimizer_state()).ok());
    hashes[disturbed ? 1 : 0] = (*replica)->parameter_hash();
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

TEST(Worker, TR_05_fewer_files_than_ranks_are_refused_with_64_and_both_numbers) {
  base::FakeFiles files;
  Job job_run(files, file_job(files, 2, {8}));
  job_run.start_all();
  (void)job_run.worker_exit(0);
  (void)job_run.worker_exit(1);
  EXPECT_EQ(job_run.coordinator_exit(), 64);
  const std::string reason = job_run.termination(0).reason;
  EXPECT_NE(reason.find("1 file "), std::string::npos) << reason;
  EXPECT_NE(reason.find("2 ranks"), std::string::npos) << reason;
}

}  // namespace
}  // namespace evenkeel::trainer
