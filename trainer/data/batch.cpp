#include "trainer/data/batch.h"

#include <cassert>
#include <cmath>
#include <string>

#include "base/hash.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

Result<double> single(const std::vector<double>& values, double fallback, const char* field) {
  if (values.empty()) return fallback;
  if (values.size() != 1) {
    return Error{ErrorCode::kInvalidInput, std::string("dataset.") + field + " has " +
                                               std::to_string(values.size()) +
                                               " values, but the images have 1 channel: give one value"};
  }
  if (!std::isfinite(values[0])) {
    return Error{ErrorCode::kInvalidInput, std::string("dataset.") + field + " is not a finite number"};
  }
  return values[0];
}

}  // namespace

Result<BatchReader> BatchReader::make(const Dataset& dataset, const std::vector<double>& mean,
                                      const std::vector<double>& stddev) {
  EVENKEEL_ASSIGN(const double shift, single(mean, 0.0, "image.mean"));
  EVENKEEL_ASSIGN(const double scale, single(stddev, 1.0, "image.std"));
  if (scale <= 0) {
    return Error{ErrorCode::kInvalidInput,
                 "dataset.image.std is " + std::to_string(scale) + ": it must be above 0"};
  }
  BatchReader reader(dataset);
  // Only 256 inputs are possible, so the arithmetic is done once, in double.
  for (int byte = 0; byte < 256; ++byte) {
    reader.value_of_byte_[static_cast<std::size_t>(byte)] =
        static_cast<float>((byte / 255.0 - shift) / scale);
  }
  return reader;
}

BatchTaken BatchReader::read(const EpochOrder& order, std::int64_t begin, std::int64_t end,
                             HostBatch& batch) const {
  batch.features.clear();
  batch.labels.clear();
  return append(order, begin, end, batch);
}

BatchTaken BatchReader::append(const EpochOrder& order, std::int64_t begin, std::int64_t end,
                               HostBatch& batch) const {
  assert(0 <= begin && begin <= end && end <= dataset_->samples);
  const auto features = static_cast<std::size_t>(dataset_->features());
  const auto count = static_cast<std::size_t>(end - begin);
  std::size_t at = batch.features.size();
  batch.features.resize(at + count * features);
  batch.labels.reserve(batch.labels.size() + count);
  BatchTaken taken;
  for (std::int64_t position = begin; position < end; ++position) {
    const std::uint64_t id = order.id_at(static_cast<std::uint64_t>(position));
    const auto pixels = dataset_->image(static_cast<std::int64_t>(id));
    for (std::size_t i = 0; i < features; ++i) batch.features[at + i] = value_of_byte_[pixels[i]];
    at += features;
    const std::int32_t label = dataset_->labels[id];
    batch.labels.push_back(label);
    ++(label == kSkippedLabel ? taken.skipped : taken.consumed);
    taken.id_hash += base::mix64(id);
    taken.bytes_read += features + 1;
  }
  return taken;
}

}  // namespace evenkeel::trainer
