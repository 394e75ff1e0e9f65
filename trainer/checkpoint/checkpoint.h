// Checkpoints on disk: <root>/step-<N>/{weights.safetensors, optimizer.safetensors, manifest.json}. Written
// by one rank after a committed step; the newest that verifies is found by every rank at start. Survives a
// crash at any instruction: a folder is complete when it has its final name, and its manifest is written
// last. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "contract/checkpoint_format.h"
#include "trainer/checkpoint/safetensors.h"

namespace evenkeel::trainer {

struct SavedCheckpoint {
  std::string directory;
  std::uint64_t bytes = 0;
  std::vector<std::string> warnings;  // old ones that could not be removed
};

// Whether a finished checkpoint may become visible: a rank that was taken for dead must not write any more.
using PublishGate = std::function<base::Status()>;

// `manifest`: all but files, which is filled in here. `optimizer` may be empty. Afterwards at most `keep`
// checkpoints of this job up to this step are left; those of another job stay. kNumerical, naming the tensor,
// where a value is not finite: such state is never written.
base::Result<SavedCheckpoint> save_checkpoint(base::Files& files, const std::string& root,
                                              contract::CheckpointManifest manifest,
                                              const std::vector<TensorView>& weights,
                                              const std::vector<TensorView>& optimizer, int keep,
                                              const PublishGate& gate = {});

struct FoundCheckpoint {
  std::string directory;
  std::string manifest_hash;  // SHA-256 of the manifest's text
  contract::CheckpointManifest manifest;
};

struct CheckpointSearch {
  std::optional<FoundCheckpoint> newest;  // absent: none verifies
  std::vector<std::string> skipped;       // "step-000000012: weights.safetensors: CRC ...", newest first
  int damaged = 0;                        // of those skipped: that do not verify, whosever they are
};

// Names, sizes and CRCs of all files of a checkpoint are checked. An error is one of reading `root` itself;
// no such folder is no error. Checkpoints of another job than `job_uid` are skipped: a path that is used
// again must not make a new job go on where an old one ended.
base::Result<CheckpointSearch> find_checkpoint(base::Files& files, const std::string& root,
                                               const std::string& job_uid);

// Of one folder. kCorruptData or kNotFound say what does not verify.
base::Result<FoundCheckpoint> verify_checkpoint(base::Files& files, const std::string& directory);

// The parts of it. The manifest alone, of a folder of any name; size and CRC of one file, read in pieces.
base::Result<FoundCheckpoint> read_manifest(base::Files& files, const std::string& directory);
base::Status verify_file(base::Files& files, const std::string& directory,
                         const contract::CheckpointFile& file);

enum class OptimizerRestored { kYes, kStartsAnew };

// Fills weights and optimizer state. The weights must be the model's (kMismatch); optimizer state of another
// form than the job's optimizer starts from zero, because a job may be edited while it is suspended.
base::Result<OptimizerRestored> load_checkpoint(base::Files& files, const FoundCheckpoint& checkpoint,
                                                const std::vector<TensorView>& weights,
                                                const std::vector<TensorView>& optimizer);

}  // namespace evenkeel::trainer
