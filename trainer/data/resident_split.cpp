#include "trainer/data/resident_split.h"

#include <algorithm>

namespace evenkeel::trainer {

ResidentSplit::ResidentSplit(Dataset data, const std::vector<int>& image_size) : data_(std::move(data)) {
  form_ = RecordForm::kPixels;
  stored_shape_ = data_.sample_shape;
  stored_shape_.resize(3, 1);  // (H, W) has one channel
  info_.name = data_.name;
  info_.samples = data_.samples;
  info_.num_classes = data_.num_classes;
  info_.sample_shape = stored_shape_;
  for (std::size_t i = 0; i < 2 && image_size.size() == 2; ++i) info_.sample_shape[i] = image_size[i];
  known_bad_ = data_.bad;
}

std::uint64_t ResidentSplit::resident_bytes() const {
  return data_.image_bytes.size() + data_.labels.size() * sizeof(std::int32_t);
}

base::Result<StoredRecord> ResidentSplit::read(std::int64_t id) const {
  const std::int32_t label = data_.labels[static_cast<std::size_t>(id)];
  if (label == kSkippedLabel) {
    const auto known = known_bad_.find(id);
    if (known == known_bad_.end()) return corrupt(id, "marked as bad");
    return base::Error{base::ErrorCode::kCorruptData, known->second};
  }
  StoredRecord record;
  record.label = label;
  record.borrow(data_.image(id));
  record.stored_bytes = record.bytes().size() + 1;
  return record;
}

std::string ResidentSplit::where(std::int64_t id) const {
  const auto after =
      std::upper_bound(data_.origins.begin(), data_.origins.end(), id,
                       [](std::int64_t value, const RecordOrigin& o) { return value < o.first; });
  if (after == data_.origins.begin()) return "split " + info_.name + ": record " + std::to_string(id);
  const RecordOrigin& origin = *(after - 1);
  const auto record = static_cast<std::uint64_t>(id - origin.first);
  return origin.file + ": record " + std::to_string(record) + ", byte offset " +
         std::to_string(origin.header_bytes + record * origin.record_bytes);
}

std::vector<std::int64_t> ResidentSplit::file_samples() const {
  std::vector<std::int64_t> samples;
  for (std::size_t i = 0; i < data_.origins.size(); ++i) {
    const std::int64_t end = i + 1 < data_.origins.size() ? data_.origins[i + 1].first : data_.samples;
    samples.push_back(end - data_.origins[i].first);
  }
  return samples.empty() ? std::vector<std::int64_t>{data_.samples} : samples;
}

}  // namespace evenkeel::trainer
