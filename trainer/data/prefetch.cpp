#include "trainer/data/prefetch.h"

#include <algorithm>
#include <utility>

#include "base/trace.h"

namespace evenkeel::trainer {

struct Prefetcher::Slot {
  enum class State { kQueued, kReading, kDone };
  std::uint64_t epoch = 0;
  PositionRanges ranges;
  State state = State::kQueued;
  HostBatch batch;
  std::optional<base::Result<BatchTaken>> taken;

  bool is(std::uint64_t e, const PositionRanges& r) const { return epoch == e && ranges == r; }
};

std::unique_ptr<Prefetcher> Prefetcher::start(const BatchReader& reader, const PrefetchOptions& options) {
  std::unique_ptr<Prefetcher> prefetcher(new Prefetcher(reader, options));
  prefetcher->thread_ = std::thread([raw = prefetcher.get()] { raw->work(); });
  return prefetcher;
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    slots_.clear();
  }
  wake_.notify_all();
  thread_.join();
}

// The layout of many files is worth keeping for the epoch.
std::shared_ptr<const EpochOrder> Prefetcher::order_of(std::uint64_t epoch) const {
  const std::lock_guard lock(order_mutex_);
  if (order_ && order_epoch_ == epoch) return order_;
  const auto samples = static_cast<std::uint64_t>(reader_->split().info().samples);
  const auto& [shuffle, seed, unused, files, passes] = options_;
  (void)unused;
  order_ = std::make_shared<const EpochOrder>(!files.empty() ? EpochOrder::of_files(files, shuffle, seed, epoch)
                                              : passes ? EpochOrder::of_passes(samples, shuffle, seed, epoch)
                                                       : EpochOrder(samples, shuffle, seed, epoch));
  order_epoch_ = epoch;
  return order_;
}

base::Result<BatchTaken> Prefetcher::read(std::uint64_t epoch, const PositionRanges& ranges,
                                          HostBatch& batch) const {
  if (reader_->split().info().samples == 0) {
    batch.clear();
    return BatchTaken{};
  }
  const base::TraceSpan span("data", "read samples");
  return reader_->read(*order_of(epoch), epoch, ranges, batch);
}

void Prefetcher::work() {
  base::name_trace_thread("data");
  std::unique_lock lock(mutex_);
  const auto next = [this] {
    return std::find_if(slots_.begin(), slots_.end(),
                        [](const auto& slot) { return slot->state == Slot::State::kQueued; });
  };
  while (true) {
    wake_.wait(lock, [&] { return stop_ || next() != slots_.end(); });
    if (stop_) return;
    const std::shared_ptr<Slot> slot = *next();  // keeps it alive when it is dropped in the meantime
    slot->state = Slot::State::kReading;
    if (!pool_.empty()) {
      slot->batch = std::move(pool_.back());
      pool_.pop_back();
    }
    lock.unlock();
    base::Result<BatchTaken> taken = read(slot->epoch, slot->ranges, slot->batch);
    lock.lock();
    slot->taken.emplace(std::move(taken));
    slot->state = Slot::State::kDone;
    if (std::find(slots_.begin(), slots_.end(), slot) == slots_.end()) {
      if (pool_.size() <= options_.max_ranges) pool_.push_back(std::move(slot->batch));  // dropped
    }
    ready_.notify_all();
  }
}

bool Prefetcher::hint(std::uint64_t epoch, const PositionRanges& ranges) {
  {
    const std::lock_guard lock(mutex_);
    if (slots_.size() >= options_.max_ranges) return false;
    for (const auto& slot : slots_) {
      if (slot->is(epoch, ranges)) return false;
    }
    auto slot = std::make_shared<Slot>();
    slot->epoch = epoch;
    slot->ranges = ranges;
    slots_.push_back(std::move(slot));
  }
  wake_.notify_one();
  return true;
}

// With the mutex held. One that is being read is dropped all the same: the thread finds out when it is done.
void Prefetcher::drop_front(std::size_t count) {
  for (; count > 0; --count) {
    Slot& slot = *slots_.front();
    if (slot.state == Slot::State::kDone && pool_.size() <= options_.max_ranges) {
      pool_.push_back(std::move(slot.batch));
    }
    slots_.pop_front();
  }
}

base::Result<BatchTaken> Prefetcher::take(std::uint64_t epoch, const PositionRanges& ranges,
                                          HostBatch& batch) {
  std::unique_lock lock(mutex_);
  const auto found = std::find_if(slots_.begin(), slots_.end(),
                                  [&](const auto& slot) { return slot->is(epoch, ranges); });
  drop_front(static_cast<std::size_t>(found - slots_.begin()));
  if (slots_.empty() || slots_.front()->state == Slot::State::kQueued) {
    // Never hinted, or hinted but not begun: then this thread is as good as the other, which goes on with the
    // next share meanwhile.
    if (!slots_.empty()) slots_.pop_front();
    lock.unlock();
    return read(epoch, ranges, batch);
  }
  const std::shared_ptr<Slot> slot = slots_.front();
  // It stays in the queue until it is done: what is no longer there counts as dropped.
  ready_.wait(lock, [&] { return slot->state == Slot::State::kDone; });
  slots_.pop_front();
  std::swap(batch, slot->batch);
  if (pool_.size() <= options_.max_ranges) pool_.push_back(std::move(slot->batch));
  return *std::move(slot->taken);
}

void Prefetcher::clear() {
  const std::lock_guard lock(mutex_);
  drop_front(slots_.size());
}

}  // namespace evenkeel::trainer
