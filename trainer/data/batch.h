// Turns positions of an epoch's order into a host batch: float features and labels. Called by the training
// loop or by its prefetching thread; one reader may serve many threads, each with a batch of its own.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "trainer/data/dataset.h"
#include "trainer/data/order.h"

namespace evenkeel::trainer {

// A batch in host memory. Reused from step to step: resizing down frees nothing.
struct HostBatch {
  std::vector<float> features;       // (n, features of a sample)
  std::vector<std::int32_t> labels;  // (n); kSkippedLabel = no part in loss and gradient

  std::int64_t samples() const { return static_cast<std::int64_t>(labels.size()); }
};

// What was really read: computed where the records are touched, so that it can testify against the plan.
struct BatchTaken {
  std::int64_t consumed = 0;  // samples with a usable label
  std::int64_t skipped = 0;   // consumed + skipped = end - begin
  std::uint64_t id_hash = 0;  // sum of base::mix64(id) over all ids read, modulo 2^64: free of any order
  std::uint64_t bytes_read = 0;
};

class BatchReader {
 public:
  // x = (pixel / 255 - mean) / stddev; mean and stddev hold one value (or are empty: 0 and 1). kInvalidInput
  // for another count, a non-finite value, or stddev <= 0. `dataset` must outlive the reader.
  static base::Result<BatchReader> make(const Dataset& dataset, const std::vector<double>& mean,
                                        const std::vector<double>& stddev);

  // Fills `batch` with positions [begin, end). begin == end gives an empty batch. REQUIRES: begin <= end <=
  // samples.
  BatchTaken read(const EpochOrder& order, std::int64_t begin, std::int64_t end, HostBatch& batch) const;
  // As above, appended behind what the batch holds: for shares made of several ranges.
  BatchTaken append(const EpochOrder& order, std::int64_t begin, std::int64_t end, HostBatch& batch) const;

  const Dataset& dataset() const { return *dataset_; }

 private:
  explicit BatchReader(const Dataset& dataset) : dataset_(&dataset) {}

  const Dataset* dataset_;
  std::array<float, 256> value_of_byte_{};
};

}  // namespace evenkeel::trainer
