// Keeps what an epoch has made of its records for the epochs after it: in memory or in a file without a name.
// Made and used by sample_pipeline.h. Thread safe. A cache that is full, or whose disk is, takes nothing more
// and says so once; what it holds stays usable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "contract/job/spec.h"

namespace evenkeel::trainer {

// What is kept of one record.
struct CachedRecord {
  std::int32_t label = 0;
  std::uint64_t stored_bytes = 0;  // as in StoredRecord
  std::string bytes;
};

class RecordCache {
 public:
  virtual ~RecordCache() = default;
  virtual std::optional<CachedRecord> find(std::int64_t id) = 0;
  // `bytes` are copied. Nothing happens where the record is there already, or the cache is full.
  virtual void keep(std::int64_t id, std::int32_t label, std::uint64_t stored_bytes,
                    std::string_view bytes) = 0;
  virtual std::uint64_t held_bytes() const = 0;
};

struct CacheOptions {
  contract::CacheMode mode = contract::CacheMode::kNone;
  std::uint64_t limit_bytes = 0;
  std::string folder;  // of kDisk: a file is made there and unlinked at once
  std::string split;   // for the log
};

// Null for kNone. A folder where no file can be made: null, and a line in the log.
std::unique_ptr<RecordCache> make_record_cache(const CacheOptions& options);

}  // namespace evenkeel::trainer
