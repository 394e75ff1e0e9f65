#include "trainer/data/prefetch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "trainer/data/crew.h"

namespace evenkeel::trainer {
namespace {

// Counts what is read, and can be made to wait or to fail.
class SlowSplit : public Split {
 public:
  explicit SlowSplit(std::int64_t samples) {
    form_ = RecordForm::kPixels;
    stored_shape_ = {1, 1, 1};
    info_ = {"train", samples, {1, 1, 1}, 10};
    pixel_.resize(static_cast<std::size_t>(samples));
    for (std::size_t i = 0; i < pixel_.size(); ++i) pixel_[i] = static_cast<std::uint8_t>(i);
  }

  std::uint64_t resident_bytes() const override { return 0; }
  std::string where(std::int64_t id) const override { return "record " + std::to_string(id); }
  base::Result<StoredRecord> read(std::int64_t id) const override {
    {
      std::unique_lock lock(mutex);
      ++reads;
      changed.notify_all();
      changed.wait(lock, [this] { return open; });
    }
    if (id == bad) return corrupt(id, "bad");
    StoredRecord record;
    record.label = static_cast<std::int32_t>(id % 10);
    record.borrow({pixel_.data() + id, 1});
    return record;
  }

  void wait_for_reads(int count) const {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return reads >= count; });
  }
  void set_open(bool value) {
    const std::lock_guard lock(mutex);
    open = value;
    changed.notify_all();
  }

  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  mutable int reads = 0;
  bool open = true;
  std::int64_t bad = -1;

 private:
  std::vector<std::uint8_t> pixel_;
};

struct Stage {
  explicit Stage(std::int64_t samples, int threads = 1) : split(samples) {
    ReaderOptions options;
    options.threads = threads;
    reader.emplace(*BatchReader::make(split, {}, options));
    prefetcher = Prefetcher::start(*reader, {Shuffle::kOff, 0, 4});
  }
  std::vector<std::int64_t> ids_of(std::uint64_t epoch, std::int64_t begin, std::int64_t end) {
    const auto taken = prefetcher->take(epoch, begin, end, batch);
    EXPECT_TRUE(taken.ok());
    return batch.ids;
  }

  SlowSplit split;
  std::optional<BatchReader> reader;
  std::unique_ptr<Prefetcher> prefetcher;
  HostBatch batch;
};

std::vector<std::int64_t> range(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> ids;
  for (std::int64_t id = begin; id < end; ++id) ids.push_back(id);
  return ids;
}

TEST(Prefetcher, gives_hinted_and_other_ranges_alike) {
  Stage stage(100);
  EXPECT_TRUE(stage.prefetcher->hint(0, 0, 10));
  EXPECT_TRUE(stage.prefetcher->hint(0, 10, 20));
  EXPECT_EQ(stage.ids_of(0, 0, 10), range(0, 10));
  EXPECT_EQ(stage.ids_of(0, 10, 20), range(10, 20));
  EXPECT_EQ(stage.ids_of(0, 50, 53), range(50, 53));
  EXPECT_EQ(stage.ids_of(0, 7, 7), range(7, 7));
}

TEST(Prefetcher, reads_ahead_without_being_asked_again) {
  Stage stage(100);
  for (std::int64_t at = 0; at < 40; at += 10) EXPECT_TRUE(stage.prefetcher->hint(0, at, at + 10));
  stage.split.wait_for_reads(40);
  EXPECT_EQ(stage.ids_of(0, 0, 10), range(0, 10));
}

TEST(Prefetcher, holds_no_more_ranges_than_allowed_and_no_range_twice) {
  Stage stage(100);
  stage.split.set_open(false);
  EXPECT_TRUE(stage.prefetcher->hint(0, 0, 10));
  EXPECT_FALSE(stage.prefetcher->hint(0, 0, 10));
  for (std::int64_t at = 10; at < 40; at += 10) EXPECT_TRUE(stage.prefetcher->hint(0, at, at + 10));
  EXPECT_FALSE(stage.prefetcher->hint(0, 40, 50));
  stage.split.set_open(true);
  EXPECT_EQ(stage.ids_of(0, 0, 10), range(0, 10));
  EXPECT_TRUE(stage.prefetcher->hint(0, 40, 50));
}

TEST(Prefetcher, another_range_drops_what_was_hinted_before_it) {
  Stage stage(100);
  for (std::int64_t at = 0; at < 40; at += 10) EXPECT_TRUE(stage.prefetcher->hint(0, at, at + 10));
  EXPECT_EQ(stage.ids_of(0, 20, 30), range(20, 30));  // the first two are gone, the fourth is kept
  EXPECT_TRUE(stage.prefetcher->hint(0, 0, 10));
  EXPECT_FALSE(stage.prefetcher->hint(0, 30, 40));
  EXPECT_EQ(stage.ids_of(3, 0, 10), range(0, 10));  // a new plan: all are gone
  EXPECT_TRUE(stage.prefetcher->hint(0, 30, 40));
  stage.prefetcher->clear();
  EXPECT_TRUE(stage.prefetcher->hint(0, 30, 40));
}

TEST(Prefetcher, a_range_dropped_while_it_is_read_disturbs_nobody) {
  Stage stage(100);
  stage.split.set_open(false);
  EXPECT_TRUE(stage.prefetcher->hint(0, 0, 10));
  stage.split.wait_for_reads(1);
  stage.prefetcher->clear();
  EXPECT_TRUE(stage.prefetcher->hint(0, 10, 20));
  stage.split.set_open(true);
  EXPECT_EQ(stage.ids_of(0, 10, 20), range(10, 20));
}

TEST(Prefetcher, an_error_comes_with_its_own_range_only) {
  Stage stage(100);
  stage.split.bad = 15;
  for (std::int64_t at = 0; at < 30; at += 10) EXPECT_TRUE(stage.prefetcher->hint(0, at, at + 10));
  stage.split.wait_for_reads(25);
  EXPECT_EQ(stage.ids_of(0, 0, 10), range(0, 10));
  const auto bad = stage.prefetcher->take(0, 10, 20, stage.batch);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().message, "record 15: bad");
  EXPECT_EQ(stage.ids_of(0, 20, 30), range(20, 30));
}

TEST(Prefetcher, ends_with_hints_left_and_a_read_under_way) {
  Stage stage(100);
  for (std::int64_t at = 0; at < 40; at += 10) EXPECT_TRUE(stage.prefetcher->hint(0, at, at + 10));
  stage.prefetcher.reset();
}

TEST(Prefetcher, many_epochs_with_threads_give_every_sample_once) {
  Stage stage(101, 3);
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    std::vector<std::int64_t> seen;
    for (std::int64_t at = 0; at < 101; at += 8) {
      const std::int64_t end = std::min<std::int64_t>(101, at + 8);
      if (end < 101) stage.prefetcher->hint(epoch, end, std::min<std::int64_t>(101, end + 8));
      const auto ids = stage.ids_of(epoch, at, end);
      seen.insert(seen.end(), ids.begin(), ids.end());
    }
    EXPECT_EQ(seen, range(0, 101));
  }
}

TEST(Crew, does_every_item_once_for_several_askers_at_a_time) {
  const auto crew = Crew::start(4);
  std::vector<std::atomic<int>> done(4000);
  std::vector<std::thread> askers;
  for (std::size_t asker = 0; asker < 4; ++asker) {
    askers.emplace_back([&, asker] {
      for (std::size_t round = 0; round < 10; ++round) {
        crew->run(100, [&](std::size_t i) { ++done[asker * 1000 + round * 100 + i]; });
      }
    });
  }
  for (std::thread& thread : askers) thread.join();
  for (const auto& count : done) EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace evenkeel::trainer
