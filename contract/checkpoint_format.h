// Names and fields of a checkpoint on disk: <path>/step-<N>/{weights.safetensors, optimizer.safetensors,
// manifest.json}. A folder whose name ends in .tmp is never read. The manifest is written last: without it
// there is no checkpoint. Writer and reader: trainer/checkpoint. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "contract/job/spec.h"
#include "contract/messages.h"

namespace evenkeel::contract {

inline constexpr char kManifestFile[] = "manifest.json";
inline constexpr char kWeightsFile[] = "weights.safetensors";
inline constexpr char kOptimizerFile[] = "optimizer.safetensors";
inline constexpr char kTemporarySuffix[] = ".tmp";
inline constexpr std::size_t kMaxManifestBytes = 16u << 20;
inline constexpr std::size_t kMaxSafetensorsHeaderBytes = 8u << 20;

std::string checkpoint_directory_name(std::int64_t step);  // "step-000000123"
// The step of such a name, or an error for any other.
base::Result<std::int64_t> parse_checkpoint_directory_name(const std::string& name);

struct CheckpointFile {
  std::string name;
  std::uint64_t size = 0;
  std::uint32_t crc32c = 0;
};

struct CheckpointManifest {
  int format = 1;
  std::string job_uid;
  std::int64_t step = 0;               // committed steps
  std::int64_t epoch = 0;              // 0-based, of the next sample
  std::int64_t cursor = 0;             // samples of that epoch that are committed
  std::int64_t samples = 0;            // committed since the job began
  std::int64_t optimizer_steps = 0;    // updates of the weights: fewer than steps where steps were skipped
  std::vector<std::int64_t> consumed;  // per rank, since the job began
  std::vector<Piece> owned = {};         // where ranks own parts of the order: what of `epoch` is left, and whose it is
  std::vector<std::int64_t> poison = {}; // ids of records that could not be read and are skipped for good
  double rate_batch = 0;                 // samples of a step that the learning rate of `step` was for; 0: not known
  std::uint64_t seed = 0;
  std::uint64_t shuffle_seed = 0;
  std::uint32_t attempt = 0;
  int ranks = 0;
  std::string plan_hash;
  std::vector<std::pair<std::string, std::string>> plan_parts;
  std::vector<CheckpointFile> files;
};

Json to_json(const CheckpointManifest& manifest);
base::Result<CheckpointManifest> decode_manifest(const Json& json);

}  // namespace evenkeel::contract
