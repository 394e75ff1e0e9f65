// Turns positions of an epoch's order into a host batch: normalised features, labels, ids. Called by the
// training loop or by its prefetching thread; one reader may serve many threads, each with a batch of its
// own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "contract/job/spec.h"
#include "trainer/data/order.h"
#include "trainer/data/split.h"

namespace evenkeel::trainer {

// A batch in host memory. Reused from step to step: resizing down frees nothing.
struct HostBatch {
  std::vector<float> features;       // (n, H, W, C), normalised; 0 for a skipped record
  std::vector<std::int32_t> labels;  // (n); kSkippedLabel = no part in loss and gradient
  std::vector<std::int64_t> ids;     // (n); number of the sample in the split, for dropout

  std::int64_t samples() const { return static_cast<std::int64_t>(labels.size()); }
  void clear() {
    features.clear();
    labels.clear();
    ids.clear();
  }
};

// What was really read: computed where the records are touched, so that it can testify against the plan.
struct BatchTaken {
  std::int64_t consumed = 0;     // samples with a usable label
  std::int64_t skipped = 0;      // consumed + skipped = end - begin
  std::uint64_t id_hash = 0;     // sum of base::mix64(id) over all ids read, modulo 2^64: free of any order
  std::uint64_t bytes_read = 0;  // as the records are stored, whether they came from a cache or not
  std::vector<std::int64_t> skipped_ids = {};  // in the order of positions
};

// A bad record may be a storage that hiccups: it is read so often before it is given up.
inline constexpr int kReadTries = 3;

struct ReaderOptions {
  int threads = 1;         // that decode the records of one batch, the calling one included
  bool augment = false;    // apply spec.augment: training, not evaluation
  std::uint64_t seed = 0;  // of the augmentation
  // For spec.cache: largest size; folder of the unlinked file of cache Disk.
  std::uint64_t cache_limit_bytes = std::uint64_t{4} << 30;
  std::string cache_folder = "/tmp";
};

class BatchReader {
 public:
  // x = (pixel / 255 - mean) / stddev; spec.mean and spec.stddev hold nothing (0 and 1), one value or one for
  // each channel. kInvalidInput for another count, a non-finite value, stddev <= 0, or changes that cannot be
  // combined. `split` must outlive the reader.
  static base::Result<BatchReader> make(const Split& split, const contract::DatasetSpec& spec,
                                        const ReaderOptions& options);
  BatchReader(BatchReader&&) noexcept;
  BatchReader& operator=(BatchReader&&) noexcept;
  ~BatchReader();

  // Fills `batch` with positions [begin, end). begin == end gives an empty batch. The same bytes for any
  // number of threads. REQUIRES: begin <= end <= samples of the order.
  // A record that fails is tried kReadTries times in all. kCorruptData: the first one that is bad, where the
  // policy is Fail; with Skip, one that is not among the max_skipped different ids that this reader may skip in
  // its life. Storage errors as they come, unless the rest of the file can be read: then the record is bad. After
  // an error the batch is empty.
  base::Result<BatchTaken> read(const EpochOrder& order, std::uint64_t epoch, std::int64_t begin,
                                std::int64_t end, HostBatch& batch) const;
  // The same for several ranges, one behind the other.
  base::Result<BatchTaken> read(const EpochOrder& order, std::uint64_t epoch, const PositionRanges& ranges,
                                HostBatch& batch) const;
  // As above, appended behind what the batch holds. After an error the batch is as it was.
  base::Result<BatchTaken> append(const EpochOrder& order, std::uint64_t epoch, const PositionRanges& ranges,
                                  HostBatch& batch) const;

  // Records that another rank, or an earlier run, could not read: skipped without being read again, and counted
  // among those that may be. Those that this reader skips it remembers by itself.
  void skip_from_now_on(const std::vector<std::int64_t>& ids) const;
  // All of them so far, ascending.
  std::vector<std::int64_t> skipped_ids() const;

  const Split& split() const;
  std::int64_t distinct_skipped() const;
  std::uint64_t cached_bytes() const;

 private:
  struct State;
  explicit BatchReader(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace evenkeel::trainer
