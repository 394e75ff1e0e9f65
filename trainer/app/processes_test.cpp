// Workers as real processes of evenkeel-trainer, with real files, signals and exit codes. The coordinator
// runs in this process, on a free port.
#include "trainer/app/processes_fixture.h"

namespace evenkeel::trainer {
namespace {

using namespace testing;

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

TEST(Processes, with_scope_job_a_killed_rank_ends_the_attempt_and_the_next_one_has_the_bits_of_an_undisturbed_run) {
  Folder undisturbed, disturbed;
  Json disturbed_spec = spec_json(disturbed.path, 2, 100, 8, 50);
  disturbed_spec["restart"]["scope"] = "Job";
  for (const Folder* folder : {&undisturbed, &disturbed}) write_row_set(folder->path + "/data", 96, 4);
  // 1,200 steps of 8; a checkpoint at the end of all.
  Job whole(undisturbed, spec_json(undisturbed.path, 2, 100, 8, 50), 1);
  EXPECT_EQ(whole.exit_of(0), 0) << whole.log(0);
  EXPECT_EQ(whole.exit_of(1), 0);
  EXPECT_EQ(whole.coordinator_exit(), 0);

  {
    Job first(disturbed, disturbed_spec, 1);
    wait_for_checkpoint(disturbed, 100);
    first.workers[1].signal(SIGKILL);
    EXPECT_EQ(first.exit_of(1), 128 + SIGKILL);
    EXPECT_EQ(first.exit_of(0), 75) << first.log(0);
    EXPECT_EQ(first.coordinator_exit(), 75);
  }
  ASSERT_LT(newest_step(disturbed), 1200);
  Job second(disturbed, disturbed_spec, 2);
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
