#include "trainer/checkpoint/checkpoint_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <limits>
#include <mutex>

#include "base/files_fake.h"
#include "trainer/checkpoint/checkpoint_fixture.h"
#include "trainer/checkpoint/files_killed.h"

namespace evenkeel::trainer {
namespace {

using base::ErrorCode;
using testing::HasSubstr;

const char kRoot[] = "/checkpoints/job";

void begin(CheckpointWriter& writer, std::int64_t step) {
  NumberedState state(step);
  writer.begin(state.manifest, state.weights(), state.optimizer());
}

// Files whose writes wait until they are let through.
class GatedFiles : public KilledFiles {
 public:
  explicit GatedFiles(base::Files& files) : KilledFiles(files, 0) {}
  base::Status write_synced(const std::string& path, std::span<const std::string_view> pieces) override {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return open_; });
    }
    return KilledFiles::write_synced(path, pieces);
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

TEST(CheckpointWriter, saves_beside_the_caller_who_may_change_the_state_at_once) {
  base::FakeFiles fake;
  GatedFiles files(fake);
  CheckpointWriter writer(files, kRoot, 3);
  NumberedState state(4);
  writer.begin(state.manifest, state.weights(), state.optimizer());
  EXPECT_TRUE(writer.busy());
  EXPECT_FALSE(writer.poll().has_value());
  std::fill(state.kernel.begin(), state.kernel.end(), -1.0f);
  std::fill(state.velocity.begin(), state.velocity.end(), -1.0f);
  files.open();
  const auto outcome = writer.wait();
  ASSERT_TRUE(outcome.has_value());
  ASSERT_TRUE(outcome->saved.ok()) << outcome->saved.error().message;
  EXPECT_EQ(outcome->step, 4);
  EXPECT_EQ(outcome->saved->directory, "/checkpoints/job/step-000000004");
  EXPECT_EQ(newest_numbered(fake, kRoot), 4);
  EXPECT_FALSE(writer.busy());
  EXPECT_FALSE(writer.wait().has_value()) << "an outcome is told once";
}

TEST(CheckpointWriter, a_second_save_waits_for_the_first_and_both_are_told_in_order) {
  base::FakeFiles files;
  CheckpointWriter writer(files, kRoot, 3);
  for (std::int64_t step = 1; step <= 5; ++step) begin(writer, step);
  std::vector<std::int64_t> steps;
  while (const auto outcome = writer.wait()) {
    EXPECT_TRUE(outcome->saved.ok());
    steps.push_back(outcome->step);
  }
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(count_checkpoints(files, kRoot), 3);
  EXPECT_EQ(newest_numbered(files, kRoot), 5);
}

TEST(CheckpointWriter, the_end_of_the_writer_finishes_what_was_begun) {
  base::FakeFiles files;
  {
    CheckpointWriter writer(files, kRoot, 3);
    begin(writer, 9);
  }
  EXPECT_EQ(newest_numbered(files, kRoot), 9);
  CheckpointWriter never_used(files, kRoot, 3);
}

TEST(CheckpointWriter, state_that_is_not_finite_is_told_by_name_and_nothing_is_touched) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    base::FakeFiles files;
    CheckpointWriter writer(files, kRoot, 3);
    NumberedState state(3);
    state.mean[1] = bad;
    writer.begin(state.manifest, state.weights(), state.optimizer());
    const auto outcome = writer.wait();
    ASSERT_TRUE(outcome.has_value());
    ASSERT_FALSE(outcome->saved.ok());
    EXPECT_EQ(outcome->saved.error().code, ErrorCode::kNumerical);
    EXPECT_THAT(outcome->saved.error().message, HasSubstr("\"bn.running_mean\""));
    EXPECT_EQ(files.calls(), 0);
  }
}

TEST(CheckpointWriter, a_failed_save_is_told_and_the_next_one_works) {
  base::FakeFiles files;
  CheckpointWriter writer(files, kRoot, 3);
  begin(writer, 1);
  ASSERT_TRUE(writer.wait()->saved.ok());
  files.fail_mutation(3, {ErrorCode::kIo, "No space left on device"});
  begin(writer, 2);
  const auto failed = writer.wait();
  ASSERT_FALSE(failed->saved.ok());
  EXPECT_THAT(failed->saved.error().message, HasSubstr("No space left"));
  begin(writer, 3);
  ASSERT_TRUE(writer.wait()->saved.ok());
  EXPECT_EQ(newest_numbered(files, kRoot), 3);
}

TEST(CheckpointWriter, the_state_may_change_its_size_between_saves) {
  base::FakeFiles files;
  CheckpointWriter writer(files, kRoot, 3);
  for (const std::size_t elements : {6u, 60u, 2u}) {
    NumberedState state(static_cast<std::int64_t>(elements), elements);
    state.manifest.step = 100 - static_cast<std::int64_t>(elements);
    writer.begin(state.manifest, state.weights(), {});
    ASSERT_TRUE(writer.wait()->saved.ok());
    NumberedState loaded(0, elements);
    const auto found = find_checkpoint(files, kRoot, "uid-1");
    // Each is later than the one before but the second; take the one just written.
    const auto written = verify_checkpoint(
        files, std::string(kRoot) + "/" + contract::checkpoint_directory_name(state.manifest.step));
    ASSERT_TRUE(written.ok()) << written.error().message;
    ASSERT_TRUE(load_checkpoint(files, *written, loaded.weights(), {}).ok());
    EXPECT_EQ(loaded.kernel, state.kernel);
  }
}

}  // namespace
}  // namespace evenkeel::trainer
