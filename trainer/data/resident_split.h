// A data set in memory (dataset.h) as a split: for the small formats, idx and cifar10. Immutable.
#pragma once

#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/data/split.h"

namespace evenkeel::trainer {

class ResidentSplit : public Split {
 public:
  // image_size: {height, width} that samples are brought to by the reader; empty = as stored.
  ResidentSplit(Dataset data, const std::vector<int>& image_size);

  std::uint64_t resident_bytes() const override;
  base::Result<StoredRecord> read(std::int64_t id) const override;
  std::string where(std::int64_t id) const override;
  std::vector<std::int64_t> file_samples() const override;

 private:
  Dataset data_;
};

}  // namespace evenkeel::trainer
