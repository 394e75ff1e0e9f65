#include "trainer/checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/files_fake.h"

namespace evenkeel::trainer {
namespace {

using base::ErrorCode;

const char kRoot[] = "/checkpoints/job";

// A state whose numbers say which step it belongs to.
struct State {
  explicit State(std::int64_t step = 0)
      : kernel(6, static_cast<float>(step)), bias(3, static_cast<float>(-step)), velocity(9) {
    manifest.job_uid = "uid-1";
    manifest.step = step;
    manifest.cursor = step * 4;
    manifest.samples = step * 4;
    manifest.consumed = {step * 2, step * 2};
    manifest.ranks = 2;
    manifest.plan_hash = "abc";
    for (std::size_t i = 0; i < velocity.size(); ++i)
      velocity[i] = static_cast<float>(step) + static_cast<float>(i);
  }
  std::vector<TensorView> weights() { return {{"d.kernel", {2, 3}, kernel}, {"d.bias", {3}, bias}}; }
  std::vector<TensorView> optimizer() { return {{"d.velocity", {9}, velocity}}; }

  contract::CheckpointManifest manifest;
  std::vector<float> kernel, bias, velocity;
};

base::Result<SavedCheckpoint> save(base::Files& files, std::int64_t step, int keep = 3) {
  State state(step);
  return save_checkpoint(files, kRoot, state.manifest, state.weights(), state.optimizer(), keep);
}

// The step of the newest that verifies, after its content was loaded and compared; 0: none.
std::int64_t newest(base::Files& files) {
  const auto search = find_checkpoint(files, kRoot, "uid-1");
  EXPECT_TRUE(search.ok());
  if (!search.ok() || !search->newest) return 0;
  const std::int64_t step = search->newest->manifest.step;
  const State expected(step);
  State loaded(0);
  const auto restored = load_checkpoint(files, *search->newest, loaded.weights(), loaded.optimizer());
  EXPECT_TRUE(restored.ok());
  EXPECT_EQ(loaded.kernel, expected.kernel);
  EXPECT_EQ(loaded.bias, expected.bias);
  EXPECT_EQ(loaded.velocity, expected.velocity);
  EXPECT_EQ(search->newest->manifest.cursor, step * 4);
  return step;
}

std::vector<std::string> folders(base::Files& files) {
  std::vector<std::string> names;
  const auto entries = files.list(kRoot);
  if (!entries.ok()) return names;
  for (const auto& entry : *entries) names.push_back(entry.name);
  return names;
}

TEST(Checkpoint, what_was_saved_is_found_and_loaded) {
  base::FakeFiles files;
  const auto saved = save(files, 12);
  ASSERT_TRUE(saved.ok()) << saved.error().message;
  EXPECT_EQ(saved->directory, "/checkpoints/job/step-000000012");
  EXPECT_GT(saved->bytes, 9u * 2 * 4);
  EXPECT_EQ(newest(files), 12);
  files.crash();
  files.recover();
  EXPECT_EQ(newest(files), 12) << "what save() has returned must be safe";
}

TEST(Checkpoint, no_folder_and_an_empty_folder_are_no_error) {
  base::FakeFiles files;
  EXPECT_EQ(newest(files), 0);
  ASSERT_TRUE(files.make_directories(kRoot).ok());
  EXPECT_EQ(newest(files), 0);
}

TEST(Checkpoint, the_newest_three_are_kept) {
  base::FakeFiles files;
  for (std::int64_t step = 1; step <= 6; ++step) ASSERT_TRUE(save(files, step * 10).ok());
  EXPECT_EQ(folders(files), (std::vector<std::string>{"step-000000040", "step-000000050", "step-000000060"}));
}

TEST(Checkpoint, one_that_does_not_verify_is_skipped_and_named) {
  base::FakeFiles files;
  for (std::int64_t step = 1; step <= 3; ++step) ASSERT_TRUE(save(files, step).ok());
  auto weights = files.read("/checkpoints/job/step-000000003/weights.safetensors", 1 << 20);
  weights->back() ^= 1;
  files.put("/checkpoints/job/step-000000003/weights.safetensors", *weights);
  auto optimizer = files.read("/checkpoints/job/step-000000002/optimizer.safetensors", 1 << 20);
  optimizer->pop_back();
  files.put("/checkpoints/job/step-000000002/optimizer.safetensors", *optimizer);
  EXPECT_EQ(newest(files), 1);
  const auto search = find_checkpoint(files, kRoot, "uid-1");
  ASSERT_EQ(search->skipped.size(), 2u);
  EXPECT_NE(search->skipped[0].find("step-000000003: weights.safetensors: the CRC"), std::string::npos)
      << search->skipped[0];
  EXPECT_NE(search->skipped[1].find("step-000000002: optimizer.safetensors: "), std::string::npos)
      << search->skipped[1];
}

TEST(Checkpoint, folders_without_manifest_or_with_a_foreign_one_are_skipped) {
  base::FakeFiles files;
  ASSERT_TRUE(save(files, 1).ok());
  files.put("/checkpoints/job/step-000000009.tmp/manifest.json", "{}");
  files.put("/checkpoints/job/step-000000008/weights.safetensors", "x");
  files.put("/checkpoints/job/step-000000007/manifest.json", "{\"format\":");
  files.put("/checkpoints/job/step-000000006/manifest.json",
            *files.read("/checkpoints/job/step-000000001/manifest.json", 1 << 20));
  files.put("/checkpoints/job/notes.txt", "hello");
  EXPECT_EQ(newest(files), 1);
  EXPECT_EQ(find_checkpoint(files, kRoot, "uid-1")->skipped.size(), 3u);
}

TEST(Checkpoint, a_new_job_does_not_go_on_where_an_old_one_ended_and_may_take_its_place) {
  base::FakeFiles files;
  for (std::int64_t step = 1; step <= 3; ++step) ASSERT_TRUE(save(files, step).ok());
  auto search = find_checkpoint(files, kRoot, "uid-2");
  EXPECT_FALSE(search->newest.has_value());
  ASSERT_EQ(search->skipped.size(), 3u);
  EXPECT_NE(search->skipped[0].find("another job (uid uid-1)"), std::string::npos);
  State state(2);
  state.manifest.job_uid = "uid-2";
  ASSERT_TRUE(save_checkpoint(files, kRoot, state.manifest, state.weights(), state.optimizer(), 3).ok());
  search = find_checkpoint(files, kRoot, "uid-2");
  ASSERT_TRUE(search->newest.has_value());
  EXPECT_EQ(search->newest->manifest.step, 2);
}

TEST(Checkpoint, a_manifest_cannot_name_files_elsewhere) {
  base::FakeFiles files;
  ASSERT_TRUE(save(files, 1).ok());
  const std::string path = "/checkpoints/job/step-000000001/manifest.json";
  std::string text = *files.read(path, 1 << 20);
  const std::string name = "optimizer.safetensors";
  text.replace(text.find(name), name.size(), "../../../etc/hostname");
  files.put(path, text);
  EXPECT_EQ(newest(files), 0);
}

TEST(Checkpoint, state_that_is_not_finite_is_never_written) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    base::FakeFiles files;
    State state(3);
    state.velocity[4] = bad;
    const auto saved = save_checkpoint(files, kRoot, state.manifest, state.weights(), state.optimizer(), 3);
    ASSERT_FALSE(saved.ok());
    EXPECT_EQ(saved.error().code, ErrorCode::kNumerical);
    EXPECT_NE(saved.error().message.find("d.velocity"), std::string::npos);
    EXPECT_TRUE(files.paths().empty());
  }
}

TEST(Checkpoint, weights_of_another_model_are_refused_and_another_optimizer_starts_anew) {
  base::FakeFiles files;
  ASSERT_TRUE(save(files, 5).ok());
  const auto found = find_checkpoint(files, kRoot, "uid-1");
  State state(0);
  std::vector<float> other(4);
  const auto refused =
      load_checkpoint(files, *found->newest, {{"d.kernel", {2, 2}, other}, {"d.bias", {3}, state.bias}}, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kMismatch);
  std::vector<float> moments(9, 1.0f);
  const auto restored =
      load_checkpoint(files, *found->newest, state.weights(), {{"d.first_moment", {9}, moments}});
  ASSERT_TRUE(restored.ok());
  EXPECT_EQ(*restored, OptimizerRestored::kStartsAnew);
  EXPECT_EQ(moments, std::vector<float>(9));
}

TEST(Checkpoint, the_same_step_again_leaves_the_good_one_and_replaces_a_bad_one) {
  base::FakeFiles files;
  ASSERT_TRUE(save(files, 4).ok());
  const int before = files.mutations();
  ASSERT_TRUE(save(files, 4).ok());
  EXPECT_EQ(files.mutations(), before);
  files.put("/checkpoints/job/step-000000004/weights.safetensors", "damaged");
  ASSERT_TRUE(save(files, 4).ok());
  EXPECT_EQ(newest(files), 4);
}

// The story of a job: steps 1 to 5, then killed in the middle of saving step 6, at every call that changes
// something.
TEST(Checkpoint, a_crash_at_any_moment_of_a_save_leaves_the_last_or_the_new_one) {
  for (const int keep : {1, 3}) {
    int calls = 0;
    {
      base::FakeFiles files;
      for (std::int64_t step = 1; step <= 5; ++step) ASSERT_TRUE(save(files, step, keep).ok());
      calls = files.mutations();
      ASSERT_TRUE(save(files, 6, keep).ok());
      calls = files.mutations() - calls;
    }
    ASSERT_GT(calls, 8);
    for (int n = 1; n <= calls; ++n) {
      base::FakeFiles files;
      for (std::int64_t step = 1; step <= 5; ++step) ASSERT_TRUE(save(files, step, keep).ok());
      files.crash_at_mutation(n);
      const auto saved = save(files, 6, keep);
      files.recover();
      const std::int64_t step = newest(files);
      EXPECT_TRUE(step == 5 || step == 6) << "crash at call " << n << " leaves step " << step;
      if (saved.ok() && saved->warnings.empty()) {
        EXPECT_EQ(step, 6);
      }
      // The next run goes on and cleans up.
      ASSERT_TRUE(save(files, 6, keep).ok());
      ASSERT_TRUE(save(files, 7, keep).ok());
      EXPECT_EQ(newest(files), 7);
      EXPECT_LE(folders(files).size(), static_cast<std::size_t>(keep)) << "crash at call " << n;
    }
  }
}

TEST(Checkpoint, half_a_checkpoint_does_not_keep_a_full_disk_full) {
  for (int n = 1; n <= 5; ++n) {  // clears, makes the folder, writes weights, optimizer, manifest
    base::FakeFiles files;
    ASSERT_TRUE(save(files, 1).ok());
    files.fail_mutation(n, {ErrorCode::kIo, "No space left on device"});
    ASSERT_FALSE(save(files, 2).ok()) << "error at call " << n;
    EXPECT_FALSE(files.exists(std::string(kRoot) + "/step-000000002.tmp")) << "error at call " << n;
  }
}

TEST(Checkpoint, an_error_at_any_call_of_a_save_is_reported_and_loses_nothing) {
  for (int n = 1; n <= 30; ++n) {
    base::FakeFiles files;
    ASSERT_TRUE(save(files, 1).ok());
    files.fail_mutation(n, {ErrorCode::kIo, "No space left on device"});
    const auto saved = save(files, 2);
    const std::int64_t step = newest(files);
    EXPECT_GE(step, saved.ok() ? 2 : 1) << "error at call " << n;
    if (!saved.ok()) {
      EXPECT_NE(saved.error().message.find("No space left"), std::string::npos) << saved.error().message;
    }
  }
}

}  // namespace
}  // namespace evenkeel::trainer
