#include <algorithm>
#include <cctype>

#include "base/hash.h"
#include "base/json.h"
#include "trainer/checkpoint/checkpoint.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;  // read at once for a CRC: memory stays flat

bool is_plain_name(const std::string& name) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-'; };
  return !name.empty() && name[0] != '.' && std::all_of(name.begin(), name.end(), plain);
}

bool has_file(const contract::CheckpointManifest& manifest, const char* name) {
  return std::any_of(manifest.files.begin(), manifest.files.end(),
                     [&](const auto& file) { return file.name == name; });
}

std::string last_part(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

}  // namespace

Status verify_file(base::Files& files, const std::string& directory, const contract::CheckpointFile& file) {
  const auto corrupt = [&](const std::string& what) {
    return Error{ErrorCode::kCorruptData, file.name + ": " + what};
  };
  if (!is_plain_name(file.name)) return corrupt("the manifest names a file outside the folder");
  const std::string path = directory + "/" + file.name;
  EVENKEEL_ASSIGN(const std::uint64_t size, files.size(path));
  if (size != file.size) {
    return corrupt(std::to_string(size) + " bytes, the manifest says " + std::to_string(file.size));
  }
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < size; at += kPieceBytes) {
    const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, size - at));
    EVENKEEL_ASSIGN(const std::string piece, files.read_range(path, at, bytes));
    crc = base::crc32c(piece, crc);
  }
  if (crc != file.crc32c) return corrupt("the CRC is not the manifest's: the file was changed or damaged");
  return {};
}

Result<FoundCheckpoint> read_manifest(base::Files& files, const std::string& directory) {
  FoundCheckpoint found;
  found.directory = directory;
  EVENKEEL_ASSIGN(const std::string text,
                  files.read(directory + "/" + contract::kManifestFile, contract::kMaxManifestBytes));
  Result<base::Json> json = base::parse_json(text, {contract::kMaxManifestBytes, 16});
  if (!json.ok())
    return Error{ErrorCode::kCorruptData, std::string(contract::kManifestFile) + ": " + json.error().message};
  EVENKEEL_ASSIGN(found.manifest, contract::decode_manifest(*json));
  if (!has_file(found.manifest, contract::kWeightsFile)) {
    return Error{ErrorCode::kCorruptData, std::string("the manifest lists no ") + contract::kWeightsFile};
  }
  found.manifest_hash = base::sha256_hex(text);
  return found;
}

Result<FoundCheckpoint> verify_checkpoint(base::Files& files, const std::string& directory) {
  EVENKEEL_ASSIGN(const std::int64_t step, contract::parse_checkpoint_directory_name(last_part(directory)));
  EVENKEEL_ASSIGN(FoundCheckpoint found, read_manifest(files, directory));
  if (found.manifest.step != step) {
    return Error{ErrorCode::kCorruptData, "the manifest is of step " + std::to_string(found.manifest.step)};
  }
  for (const contract::CheckpointFile& file : found.manifest.files) {
    EVENKEEL_TRY(verify_file(files, directory, file));
  }
  return found;
}

Result<CheckpointSearch> find_checkpoint(base::Files& files, const std::string& root,
                                         const std::string& job_uid) {
  CheckpointSearch search;
  Result<std::vector<base::DirEntry>> entries = files.list(root);
  if (!entries.ok() && entries.error().code == ErrorCode::kNotFound) return search;
  if (!entries.ok()) return base::with_context("looking for checkpoints", std::move(entries).error());
  std::vector<std::pair<std::int64_t, std::string>> names;
  for (const base::DirEntry& entry : *entries) {
    const Result<std::int64_t> step = contract::parse_checkpoint_directory_name(entry.name);
    if (step.ok() && entry.is_directory) names.emplace_back(*step, entry.name);
  }
  std::sort(names.rbegin(), names.rend());
  for (const auto& [step, name] : names) {
    Result<FoundCheckpoint> found = verify_checkpoint(files, root + "/" + name);
    if (found.ok() && found->manifest.job_uid != job_uid) {
      search.skipped.push_back(name + ": of another job (uid " + found->manifest.job_uid + ")");
      continue;
    }
    if (found.ok()) {
      search.newest = std::move(*found);
      return search;
    }
    search.skipped.push_back(name + ": " + found.error().message);
    ++search.damaged;
  }
  return search;
}

Result<OptimizerRestored> load_checkpoint(base::Files& files, const FoundCheckpoint& checkpoint,
                                          const std::vector<TensorView>& weights,
                                          const std::vector<TensorView>& optimizer) {
  EVENKEEL_TRY(read_safetensors(files, checkpoint.directory + "/" + contract::kWeightsFile, weights));
  if (optimizer.empty()) return OptimizerRestored::kYes;
  if (has_file(checkpoint.manifest, contract::kOptimizerFile)) {
    const Status status =
        read_safetensors(files, checkpoint.directory + "/" + contract::kOptimizerFile, optimizer);
    if (status.ok()) return OptimizerRestored::kYes;
    if (status.error().code != ErrorCode::kMismatch) return status.error();
  }
  for (const TensorView& tensor : optimizer) std::fill(tensor.values.begin(), tensor.values.end(), 0.0f);
  return OptimizerRestored::kStartsAnew;
}

}  // namespace evenkeel::trainer
