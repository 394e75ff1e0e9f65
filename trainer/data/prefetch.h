// Reads shares of an epoch ahead of the training loop, on threads of its own. The loop says early which ranges
// it will want (hint) and fetches them later (take); a wrong or missing hint costs time, never correctness.
// hint, take and clear are for one thread at a time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "trainer/data/batch.h"

namespace evenkeel::trainer {

struct PrefetchOptions {
  Shuffle shuffle = Shuffle::kOn;
  std::uint64_t shuffle_seed = 0;
  std::size_t max_ranges = 4;  // shares, read or waiting to be read; each holds a batch
  std::vector<std::int64_t> file_samples = {};  // not empty: the order is EpochOrder::of_files()
  bool passes = false;                          // the order is EpochOrder::of_passes()
};

class Prefetcher {
 public:
  // `reader` must outlive it. Ranges are positions of the epoch's order, as the options say.
  static std::unique_ptr<Prefetcher> start(const BatchReader& reader, const PrefetchOptions& options);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Queues a share. False: nothing happens, because max_ranges are waiting or this one is there already.
  bool hint(std::uint64_t epoch, const PositionRanges& ranges);
  bool hint(std::uint64_t epoch, std::int64_t begin, std::int64_t end) { return hint(epoch, {{begin, end}}); }

  // The share, as BatchReader::read gives it, errors included. Hinted: waits for it, drops what was hinted
  // before it, and keeps what was hinted after. Not hinted: drops every hint, because the plan has changed,
  // and reads now. `batch` gives its memory back to the pool.
  base::Result<BatchTaken> take(std::uint64_t epoch, const PositionRanges& ranges, HostBatch& batch);
  base::Result<BatchTaken> take(std::uint64_t epoch, std::int64_t begin, std::int64_t end, HostBatch& batch) {
    return take(epoch, {{begin, end}}, batch);
  }

  // Drops every hint.
  void clear();

 private:
  struct Slot;
  Prefetcher(const BatchReader& reader, const PrefetchOptions& options)
      : reader_(&reader), options_(options) {}
  void work();
  base::Result<BatchTaken> read(std::uint64_t epoch, const PositionRanges& ranges, HostBatch& batch) const;
  std::shared_ptr<const EpochOrder> order_of(std::uint64_t epoch) const;
  void drop_front(std::size_t count);

  const BatchReader* reader_;
  const PrefetchOptions options_;
  mutable std::mutex order_mutex_;
  mutable std::shared_ptr<const EpochOrder> order_;  // of the epoch that was read last
  mutable std::uint64_t order_epoch_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;   // the thread: a share to read, or stop
  std::condition_variable ready_;  // take: its share is there
  std::deque<std::shared_ptr<Slot>> slots_;
  std::vector<HostBatch> pool_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace evenkeel::trainer
