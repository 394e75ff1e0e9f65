// One record, from storage to the bytes that the model sees: read, decode (no larger than needed), crop or
// resize, move, mirror. Keeps what is worth keeping in a cache. Made and used by batch.h; thread safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "trainer/data/augment.h"
#include "trainer/data/record_cache.h"
#include "trainer/data/split.h"

namespace evenkeel::trainer {

// What a record gave besides its pixels.
struct SampleTaken {
  std::int32_t label = 0;
  std::uint64_t stored_bytes = 0;
};

class SamplePipeline {
 public:
  // `split` must outlive it. The cache may be null.
  SamplePipeline(const Split& split, const AugmentRules& rules, std::unique_ptr<RecordCache> cache)
      : split_(&split), rules_(rules), cache_(std::move(cache)) {}

  // Fills `out`, of the size of a sample: (H, W, C). kCorruptData: the record is bad, `out` is anything.
  base::Result<SampleTaken> make(std::int64_t id, std::uint64_t epoch, std::span<std::uint8_t> out) const;

  const RecordCache* cache() const { return cache_.get(); }

 private:
  base::Result<AugmentPlan> fit(std::int64_t id, std::uint64_t epoch, std::span<const std::uint8_t> bytes,
                                Image& fitted) const;

  const Split* split_;
  AugmentRules rules_;
  // With randomResizedCrop the records as they are stored, else the pictures at their final size.
  std::unique_ptr<RecordCache> cache_;
};

}  // namespace evenkeel::trainer
