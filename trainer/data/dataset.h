// A data set in memory: raw bytes of the images, labels, shape. Made by a reader (idx_reader.h,
// cifar_reader.h), served as a split by resident_split.h. Immutable after loading, so any number of threads
// may read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/split.h"

namespace evenkeel::trainer {

// Where the labels of some records lie: record i of the data set starts at header + (i - first) * record.
struct RecordOrigin {
  std::string file;
  std::int64_t first = 0;
  std::uint64_t header_bytes = 0;
  std::uint64_t record_bytes = 0;
};

struct Dataset {
  std::string name;                        // the split, for messages: "train"
  std::int64_t samples = 0;                // N
  std::vector<std::int64_t> sample_shape;  // (H, W) or (H, W, C)
  int num_classes = 0;                     // labels are in [0, num_classes) or kSkippedLabel
  std::string image_bytes;  // the file's bytes; the pixels start at image_offset: (N, H, W, C) u8
  std::size_t image_offset = 0;
  std::vector<std::int32_t> labels;         // (N)
  std::int64_t skipped = 0;                 // labels equal to kSkippedLabel
  std::map<std::int64_t, std::string> bad;  // the same records, each with file, record, offset, cause
  std::vector<RecordOrigin> origins;        // by `first`

  // Pixels of one sample: product of sample_shape.
  std::int64_t features() const {
    std::int64_t product = 1;
    for (const std::int64_t dim : sample_shape) product *= dim;
    return product;
  }

  // REQUIRES: 0 <= index < samples.
  std::span<const std::uint8_t> image(std::int64_t index) const {
    const auto size = static_cast<std::size_t>(features());
    const auto* base = reinterpret_cast<const std::uint8_t*>(image_bytes.data()) + image_offset;
    return {base + static_cast<std::size_t>(index) * size, size};
  }
};

}  // namespace evenkeel::trainer
