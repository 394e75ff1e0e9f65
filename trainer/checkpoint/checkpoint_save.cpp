#include <algorithm>
#include <bit>
#include <string_view>

#include "base/hash.h"
#include "trainer/checkpoint/checkpoint.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

std::string join_path(const std::string& folder, const std::string& name) {
  return folder + "/" + name;
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string_view bytes_of(const TensorView& tensor) {
  return {reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size_bytes()};
}

// By bits, in one pass that vectorises: an exponent of all ones is Inf or NaN.
bool all_finite(std::span<const float> values) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  std::uint32_t bad = 0;
  for (const float value : values) bad |= (std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent;
  return bad == 0;
}

Status check_finite(const std::vector<TensorView>& tensors) {
  for (const TensorView& tensor : tensors) {
    if (all_finite(tensor.values)) continue;
    return Error{ErrorCode::kNumerical,
                 "checkpoint refused: \"" + tensor.name + "\" holds a value that is not finite"};
  }
  return {};
}

// Writes one file of tensors and notes size and CRC.
Status write_tensors(base::Files& files, const std::string& folder, const char* name,
                     const std::vector<TensorView>& tensors, contract::CheckpointManifest& manifest) {
  const std::string header = safetensors_header(tensors);
  std::vector<std::string_view> pieces{header};
  for (const TensorView& tensor : tensors) pieces.push_back(bytes_of(tensor));
  contract::CheckpointFile file;
  file.name = name;
  for (const std::string_view piece : pieces) {
    file.size += piece.size();
    file.crc32c = base::crc32c(piece, file.crc32c);
  }
  EVENKEEL_TRY(files.write_synced(join_path(folder, name), pieces));
  manifest.files.push_back(file);
  return {};
}

// Level by level: a new folder is safe only when the one above it is synced.
Status make_root(base::Files& files, const std::string& root) {
  if (root == "/" || root == "." || files.exists(root)) return {};
  EVENKEEL_TRY(make_root(files, parent_of(root)));
  EVENKEEL_TRY(files.make_directories(root));
  return files.sync_directory(parent_of(root));
}

Status write_folder(base::Files& files, const std::string& folder, contract::CheckpointManifest& manifest,
                    const std::vector<TensorView>& weights, const std::vector<TensorView>& optimizer) {
  EVENKEEL_TRY(files.remove_all(folder));  // of a run that was killed here
  EVENKEEL_TRY(files.make_directories(folder));
  EVENKEEL_TRY(write_tensors(files, folder, contract::kWeightsFile, weights, manifest));
  if (!optimizer.empty()) {
    EVENKEEL_TRY(write_tensors(files, folder, contract::kOptimizerFile, optimizer, manifest));
  }
  const std::string text = base::dump_json(contract::to_json(manifest), 1) + "\n";
  const std::string_view pieces[] = {text};
  EVENKEEL_TRY(files.write_synced(join_path(folder, contract::kManifestFile), pieces));
  return files.sync_directory(folder);
}

// By renaming first: a folder that is half removed must not look like a checkpoint.
Status remove_folder(base::Files& files, const std::string& root, const std::string& name) {
  const std::string doomed = join_path(root, name + contract::kTemporarySuffix);
  EVENKEEL_TRY(files.remove_all(doomed));
  EVENKEEL_TRY(files.rename(join_path(root, name), doomed));
  return files.remove_all(doomed);
}

bool is_temporary(const std::string& name) {
  const std::string_view suffix = contract::kTemporarySuffix;
  return name.size() > suffix.size() && name.ends_with(suffix) &&
         contract::parse_checkpoint_directory_name(name.substr(0, name.size() - suffix.size())).ok();
}

// A folder may be used by another job too, and its last weights are its result.
bool is_of_another_job(base::Files& files, const std::string& folder, const std::string& job_uid) {
  const Result<FoundCheckpoint> found = read_manifest(files, folder);
  return found.ok() && found->manifest.job_uid != job_uid;
}

// Keeps the newest `keep` of this job up to `step`. Later ones did not verify when this run began (it would
// have begun there): they are not counted and not touched, so that whoever wants to look at them can.
Status prune(base::Files& files, const std::string& root, const contract::CheckpointManifest& saved,
             int keep) {
  EVENKEEL_ASSIGN(const std::vector<base::DirEntry> entries, files.list(root));
  std::vector<std::pair<std::int64_t, std::string>> found;
  Status first;
  const auto note = [&](Status status) {
    if (first.ok() && !status.ok()) first = std::move(status);
  };
  for (const base::DirEntry& entry : entries) {
    if (!entry.is_directory) continue;
    if (is_temporary(entry.name)) note(files.remove_all(join_path(root, entry.name)));
    const Result<std::int64_t> number = contract::parse_checkpoint_directory_name(entry.name);
    if (!number.ok() || *number > saved.step) continue;
    if (is_of_another_job(files, join_path(root, entry.name), saved.job_uid)) continue;
    found.emplace_back(*number, entry.name);
  }
  std::sort(found.rbegin(), found.rend());
  for (std::size_t i = static_cast<std::size_t>(std::max(keep, 1)); i < found.size(); ++i) {
    note(remove_folder(files, root, found[i].second));
  }
  return first;
}

std::uint64_t size_of(const contract::CheckpointManifest& manifest) {
  std::uint64_t bytes = 0;
  for (const contract::CheckpointFile& file : manifest.files) bytes += file.size;
  return bytes;
}

}  // namespace

Result<SavedCheckpoint> save_checkpoint(base::Files& files, const std::string& root,
                                        contract::CheckpointManifest manifest,
                                        const std::vector<TensorView>& weights,
                                        const std::vector<TensorView>& optimizer, int keep,
                                        const PublishGate& gate) {
  EVENKEEL_TRY(check_finite(weights));
  EVENKEEL_TRY(check_finite(optimizer));
  EVENKEEL_TRY(make_root(files, root));
  const std::string name = contract::checkpoint_directory_name(manifest.step);
  const std::string final_folder = join_path(root, name);
  SavedCheckpoint saved{final_folder, 0, {}};

  if (files.exists(final_folder)) {
    // The same step of the same job again. What verifies stays: replacing it would open a moment without it.
    const Result<FoundCheckpoint> there = verify_checkpoint(files, final_folder);
    if (there.ok() && there->manifest.job_uid == manifest.job_uid) {
      saved.bytes = size_of(there->manifest);
      return saved;
    }
    // Unreadable at the moment is not damaged.
    if (!there.ok() && there.error().code == ErrorCode::kIo) return there.error();
    EVENKEEL_TRY(remove_folder(files, root, name));
  }
  const std::string temporary = final_folder + contract::kTemporarySuffix;
  manifest.files.clear();
  if (Status written = write_folder(files, temporary, manifest, weights, optimizer); !written.ok()) {
    // Half a checkpoint must not keep a full disk full: the next save needs the room.
    (void)files.remove_all(temporary);
    return written.error();
  }
  if (gate) EVENKEEL_TRY(gate());
  EVENKEEL_TRY(files.rename(temporary, final_folder));
  EVENKEEL_TRY(files.sync_directory(root));
  saved.bytes = size_of(manifest);
  const Status pruned = prune(files, root, manifest, keep);
  if (!pruned.ok()) saved.warnings.push_back("old checkpoints not removed: " + pruned.error().message);
  return saved;
}

}  // namespace evenkeel::trainer
