#include "trainer/data/cifar_reader.h"

#include "trainer/data/format.h"
#include "trainer/data/resident_split.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

constexpr std::size_t kMaxFileBytes = std::size_t{2} << 30;  // the whole set has 184 MB
constexpr int kCifarClasses = 10;

Result<std::vector<std::string>> files_of(base::Files& files, const std::string& folder,
                                          const std::string& split) {
  EVENKEEL_ASSIGN(const auto entries, files.list(folder));
  const auto with_prefix = [&](const std::string& prefix) {
    std::vector<std::string> found;
    for (const base::DirEntry& entry : entries) {
      if (!entry.is_directory && entry.name.starts_with(prefix) && entry.name.ends_with(".bin"))
        found.push_back(folder + "/" + entry.name);
    }
    return found;
  };
  std::vector<std::string> found = split == "train" ? with_prefix("data_batch_") : std::vector<std::string>{};
  if (found.empty()) found = with_prefix(split);
  if (!found.empty()) return found;
  return Error{ErrorCode::kNotFound,
               "no file " + std::string(split == "train" ? "data_batch_*.bin or " : "") + split +
                   "*.bin in " + folder + ": check dataset.path and dataset.split, or mount the volume"};
}

void append_interleaved(std::string_view planes, std::string& out) {
  constexpr std::size_t kPlane = kCifarSide * kCifarSide;
  for (std::size_t i = 0; i < kPlane; ++i) {
    for (std::size_t c = 0; c < 3; ++c) out.push_back(planes[c * kPlane + i]);
  }
}

// Marks labels out of range. `first`: of the file.
void judge_labels(const std::string& file, std::size_t first, Dataset& data) {
  for (std::size_t i = first; i < data.labels.size(); ++i) {
    const std::int32_t label = data.labels[i];
    if (label < data.num_classes) continue;
    const std::size_t record = i - first;
    data.bad.emplace(static_cast<std::int64_t>(i),
                     file + ": record " + std::to_string(record) + ", byte offset " +
                         std::to_string(record * kCifarRecordBytes) + ": label " + std::to_string(label) +
                         " is out of range, there are " + std::to_string(data.num_classes) +
                         " classes (0 to " + std::to_string(data.num_classes - 1) + ")");
    data.labels[i] = kSkippedLabel;
    ++data.skipped;
  }
}

}  // namespace

Status append_cifar(std::string_view bytes, const std::string& file, Dataset& data) {
  if (bytes.empty()) {
    return Error{ErrorCode::kCorruptData, file + ": at byte 0: the file is empty; fetch it again"};
  }
  const std::size_t records = bytes.size() / kCifarRecordBytes;
  if (bytes.size() % kCifarRecordBytes != 0) {
    return Error{ErrorCode::kCorruptData,
                 file + ": record " + std::to_string(records) + ", byte offset " +
                     std::to_string(records * kCifarRecordBytes) + ": truncated: the file has " +
                     std::to_string(bytes.size()) + " bytes, no multiple of the " +
                     std::to_string(kCifarRecordBytes) + " of a record; fetch it again"};
  }
  data.image_bytes.reserve(data.image_bytes.size() + records * (kCifarRecordBytes - 1));
  for (std::size_t r = 0; r < records; ++r) {
    const std::string_view record = bytes.substr(r * kCifarRecordBytes, kCifarRecordBytes);
    data.labels.push_back(static_cast<std::uint8_t>(record[0]));
    append_interleaved(record.substr(1), data.image_bytes);
  }
  data.samples += static_cast<std::int64_t>(records);
  return {};
}

Result<Dataset> read_cifar(base::Files& files, const std::string& folder, const std::string& split,
                           int num_classes) {
  EVENKEEL_ASSIGN(const std::vector<std::string> names, files_of(files, folder, split));
  Dataset data;
  data.name = split;
  data.sample_shape = {kCifarSide, kCifarSide, 3};
  data.num_classes = num_classes > 0 ? num_classes : kCifarClasses;
  for (const std::string& file : names) {
    const std::size_t first = data.labels.size();
    EVENKEEL_ASSIGN(const std::string bytes, files.read(file, kMaxFileBytes));
    EVENKEEL_TRY(append_cifar(bytes, file, data));
    data.origins.push_back({file, static_cast<std::int64_t>(first), 0, kCifarRecordBytes});
    judge_labels(file, first, data);
  }
  return data;
}

OpenedSplit open_cifar(const FormatRequest& request) {
  EVENKEEL_ASSIGN(Dataset data,
                  read_cifar(request.files, request.spec.path, request.split, request.num_classes));
  return std::unique_ptr<Split>(std::make_unique<ResidentSplit>(std::move(data), request.spec.image_size));
}

}  // namespace evenkeel::trainer
