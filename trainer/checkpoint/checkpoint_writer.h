// Checkpoints written beside the training: begin() copies the state and returns; a thread of the writer's own
// does the rest (checks, files, pruning: save_checkpoint). Used by the rank that writes, between steps. One
// caller thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "trainer/checkpoint/checkpoint.h"

namespace evenkeel::trainer {

// How one save ended.
struct SaveOutcome {
  std::int64_t step = 0;
  double copy_seconds = 0;   // the training stood still for this long
  double write_seconds = 0;  // beside it
  base::Result<SavedCheckpoint> saved = SavedCheckpoint{};
};

class CheckpointWriter {
 public:
  // files: outlives the writer. keep: as for save_checkpoint. No thread is started before the first begin().
  // gate: asked before a save becomes visible, by the writer's thread; its error ends the save. Empty: always
  // allowed.
  CheckpointWriter(base::Files& files, std::string root, int keep, PublishGate gate = {});
  // Waits for what is being written; its outcome is lost.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Copies the tensors into buffers of its own (the same ones each time); the caller's memory is free again
  // on return. Waits first while another save runs: two are never on the way. State that is not finite is
  // told as an outcome, kNumerical naming the tensor, and nothing is written.
  void begin(contract::CheckpointManifest manifest, const std::vector<TensorView>& weights,
             const std::vector<TensorView>& optimizer);

  // Each outcome once, oldest first. poll() does not wait: nullopt when no save has ended. wait() waits for
  // the running one: nullopt when none runs and all outcomes were taken.
  std::optional<SaveOutcome> poll();
  std::optional<SaveOutcome> wait();
  bool busy() const;  // being written now

 private:
  // A copy of some tensors. The memory is kept from save to save.
  struct Copies {
    std::vector<float> memory;
    std::vector<TensorView> views;
    void take(const std::vector<TensorView>& tensors);
  };
  void run();
  std::optional<SaveOutcome> take_outcome();

  base::Files& files_;
  const std::string root_;
  const int keep_;
  const PublishGate gate_;
  // Written by begin() while the thread rests, by the thread while busy_.
  contract::CheckpointManifest manifest_;
  Copies weights_;
  Copies optimizer_;
  double copy_seconds_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false;
  bool stops_ = false;
  std::deque<SaveOutcome> outcomes_;
  std::thread thread_;
};

}  // namespace evenkeel::trainer
