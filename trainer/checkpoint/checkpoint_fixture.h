// For tests: a state whose numbers say which step it belongs to, and the newest checkpoint, loaded and
// compared with it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint.h"

namespace evenkeel::trainer {

struct NumberedState {
  explicit NumberedState(std::int64_t step = 0, std::size_t elements = 6)
      : kernel(elements, static_cast<float>(step)), mean(3, static_cast<float>(-step)), velocity(9) {
    manifest.job_uid = "uid-1";
    manifest.step = step;
    manifest.cursor = step * 4;
    manifest.samples = step * 4;
    manifest.optimizer_steps = step;
    manifest.consumed = {step * 2, step * 2};
    manifest.ranks = 2;
    manifest.plan_hash = "abc";
    for (std::size_t i = 0; i < velocity.size(); ++i)
      velocity[i] = static_cast<float>(step) + static_cast<float>(i);
  }
  std::vector<TensorView> weights() {
    return {{"d.kernel", {static_cast<std::int64_t>(kernel.size())}, kernel}, {"bn.running_mean", {3}, mean}};
  }
  std::vector<TensorView> optimizer() { return {{"d.kernel.velocity", {9}, velocity}}; }

  contract::CheckpointManifest manifest;
  std::vector<float> kernel, mean, velocity;
};

inline base::Result<SavedCheckpoint> save_numbered(base::Files& files, const std::string& root,
                                                   std::int64_t step, int keep, std::size_t elements = 6) {
  NumberedState state(step, elements);
  return save_checkpoint(files, root, state.manifest, state.weights(), state.optimizer(), keep);
}

// The step of the newest that verifies, after its content was loaded and compared; 0: none.
inline std::int64_t newest_numbered(base::Files& files, const std::string& root, std::size_t elements = 6) {
  const auto search = find_checkpoint(files, root, "uid-1");
  EXPECT_TRUE(search.ok());
  if (!search.ok() || !search->newest) return 0;
  EXPECT_FALSE(search->newest->directory.ends_with(contract::kTemporarySuffix));
  const std::int64_t step = search->newest->manifest.step;
  const NumberedState expected(step, elements);
  NumberedState loaded(0, elements);
  const auto restored = load_checkpoint(files, *search->newest, loaded.weights(), loaded.optimizer());
  EXPECT_TRUE(restored.ok());
  EXPECT_EQ(loaded.kernel, expected.kernel);
  EXPECT_EQ(loaded.mean, expected.mean);
  EXPECT_EQ(loaded.velocity, expected.velocity);
  EXPECT_EQ(search->newest->manifest.cursor, step * 4);
  EXPECT_EQ(search->newest->manifest.optimizer_steps, step);
  return step;
}

// Complete ones: with a final name.
inline int count_checkpoints(base::Files& files, const std::string& root) {
  const auto entries = files.list(root);
  if (!entries.ok()) return 0;
  int count = 0;
  for (const auto& entry : *entries)
    count += contract::parse_checkpoint_directory_name(entry.name).ok() ? 1 : 0;
  return count;
}

}  // namespace evenkeel::trainer
