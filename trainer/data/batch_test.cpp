#include "trainer/data/batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/files_fake.h"
#include "base/hash.h"
#include "trainer/data/augment.h"
#include "trainer/data/open_dataset.h"
#include "trainer/data/resident_split.h"
#include "trainer/data/stand_in.h"
#include "trainer/data/test_pictures.h"
#include "trainer/data/tfrecord.h"

namespace evenkeel::trainer {
namespace {

using base::ErrorCode;
using contract::Augmentation;
using namespace testing;  // NOLINT: test helpers

// Sample i is two pixels, i and 255 - i, with label i mod 3.
Dataset tiny(std::int64_t samples) {
  Dataset data;
  data.name = "train";
  data.samples = samples;
  data.sample_shape = {1, 2};
  data.num_classes = 3;
  for (std::int64_t i = 0; i < samples; ++i) {
    data.image_bytes.push_back(static_cast<char>(i));
    data.image_bytes.push_back(static_cast<char>(255 - i));
    data.labels.push_back(static_cast<std::int32_t>(i % 3));
  }
  return data;
}

BatchReader reader_of(const Split& split, const contract::DatasetSpec& spec = {},
                      const ReaderOptions& options = {}) {
  auto reader = BatchReader::make(split, spec, options);
  EXPECT_TRUE(reader.ok()) << reader.error().message;
  return std::move(reader).value();
}

EpochOrder file_order(std::int64_t samples) {
  return EpochOrder(static_cast<std::uint64_t>(samples), Shuffle::kOff, 0, 0);
}

TEST(BatchReader, reads_the_positions_of_the_order) {
  const ResidentSplit split(tiny(200), {});
  EXPECT_EQ(split.info().sample_shape, (std::vector<std::int64_t>{1, 2, 1}));
  const BatchReader reader = reader_of(split);
  const EpochOrder order(200, Shuffle::kOn, 42, 0);
  HostBatch batch;
  const auto taken = reader.read(order, 0, 10, 14, batch);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->consumed, 4);
  EXPECT_EQ(taken->bytes_read, 12u);
  ASSERT_EQ(batch.samples(), 4);
  for (std::uint64_t i = 0; i < 4; ++i) {
    const auto id = order.id_at(10 + i);
    EXPECT_EQ(batch.ids[i], static_cast<std::int64_t>(id));
    EXPECT_FLOAT_EQ(batch.features[2 * i], static_cast<float>(id) / 255.0f);
    EXPECT_FLOAT_EQ(batch.features[2 * i + 1], static_cast<float>(255 - id) / 255.0f);
    EXPECT_EQ(batch.labels[i], static_cast<std::int32_t>(id % 3));
  }
}

TEST(BatchReader, normalises_by_mean_and_deviation_of_each_channel) {
  const ResidentSplit split(tiny(52), {});
  contract::DatasetSpec spec;
  spec.mean = {0.5};
  spec.stddev = {0.25};
  HostBatch batch;
  ASSERT_TRUE(reader_of(split, spec).read(file_order(52), 0, 51, 52, batch).ok());  // 51 / 255 = 0.2
  EXPECT_FLOAT_EQ(batch.features[0], -1.2f);
  EXPECT_FLOAT_EQ(batch.features[1], 1.2f);

  Dataset color = tiny(6);
  color.samples = 4;
  color.labels.resize(4);
  color.sample_shape = {1, 1, 3};
  const ResidentSplit rgb(std::move(color), {});
  spec.mean = {0, 1, 0};
  spec.stddev = {1, 1, 2};
  ASSERT_TRUE(reader_of(rgb, spec).read(file_order(4), 0, 0, 1, batch).ok());  // pixels 0, 255, 1
  EXPECT_FLOAT_EQ(batch.features[1], 0.0f);
  EXPECT_FLOAT_EQ(batch.features[2], 1.0f / 255 / 2);
}

TEST(BatchReader, refuses_a_normalisation_that_cannot_be) {
  const ResidentSplit split(tiny(2), {});
  contract::DatasetSpec spec;
  spec.mean = {0.1, 0.2, 0.3};
  EXPECT_EQ(BatchReader::make(split, spec, {}).error().code, ErrorCode::kInvalidInput);
  spec.mean = {};
  spec.stddev = {0.0};
  EXPECT_EQ(BatchReader::make(split, spec, {}).error().code, ErrorCode::kInvalidInput);
}

TEST(BatchReader, hash_of_ids_does_not_depend_on_ranges_or_order) {
  const ResidentSplit split(tiny(101), {});
  const BatchReader reader = reader_of(split);
  std::uint64_t expected = 0;
  for (std::uint64_t id = 0; id < 101; ++id) expected += base::mix64(id);
  for (const std::uint64_t epoch : {0u, 1u}) {
    const EpochOrder order(101, Shuffle::kOn, 42, epoch);
    HostBatch batch;
    std::uint64_t sum = 0;
    for (std::int64_t at = 0; at < 101; at += 10) {
      sum += reader.read(order, epoch, at, std::min<std::int64_t>(101, at + 10), batch)->id_hash;
    }
    EXPECT_EQ(sum, expected);
  }
}

TEST(BatchReader, an_empty_range_gives_an_empty_batch) {
  const ResidentSplit split(tiny(5), {});
  HostBatch batch;
  const auto taken = reader_of(split).read(file_order(5), 0, 5, 5, batch);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->consumed + taken->skipped, 0);
  EXPECT_EQ(taken->id_hash, 0u);
  EXPECT_EQ(batch.samples(), 0);
}

// Records 2, 4 and 6 of ten are bad.
Dataset with_bad_records() {
  Dataset data = tiny(10);
  for (const std::int64_t id : {2, 4, 6}) {
    data.labels[static_cast<std::size_t>(id)] = kSkippedLabel;
    data.bad[id] = "labels: record " + std::to_string(id) + ": bad";
  }
  return data;
}

TEST(BatchReader, skipped_records_keep_their_place_with_zeros_and_are_counted_apart) {
  const ResidentSplit split(with_bad_records(), {});
  contract::DatasetSpec spec;
  spec.bad_record_action = contract::BadRecordAction::kSkip;
  spec.max_skipped = 3;
  spec.mean = {0.5};
  const BatchReader reader = reader_of(split, spec);
  HostBatch batch;
  ASSERT_TRUE(reader.read(file_order(10), 0, 3, 6, batch).ok());
  const auto second = reader.append(file_order(10), 0, {{8, 10}}, batch);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->consumed, 2);
  EXPECT_EQ(batch.labels, (std::vector<std::int32_t>{0, kSkippedLabel, 2, 2, 0}));
  EXPECT_EQ(batch.ids, (std::vector<std::int64_t>{3, 4, 5, 8, 9}));
  EXPECT_EQ(batch.features.size(), 10u);
  EXPECT_EQ(batch.features[2], 0.0f);
  EXPECT_EQ(batch.features[3], 0.0f);
}

TEST(BatchReader, the_limit_counts_different_records_not_discoveries) {
  const ResidentSplit split(with_bad_records(), {});
  contract::DatasetSpec spec;
  spec.bad_record_action = contract::BadRecordAction::kSkip;
  spec.max_skipped = 2;
  const BatchReader reader = reader_of(split, spec);
  HostBatch batch;
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    const auto taken = reader.read(file_order(10), epoch, 0, 6, batch);
    ASSERT_TRUE(taken.ok());
    EXPECT_EQ(taken->skipped, 2);  // every epoch meets them again
  }
  EXPECT_EQ(reader.distinct_skipped(), 2);
  const auto third = reader.append(file_order(10), 3, {{6, 7}}, batch);
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code, ErrorCode::kCorruptData);
  EXPECT_NE(third.error().message.find("record 6: bad: 3 bad records, more than"), std::string::npos)
      << third.error().message;
  EXPECT_EQ(batch.samples(), 6);  // as it was
}

TEST(BatchReader, fails_with_the_first_bad_position_whatever_the_threads) {
  const ResidentSplit split(with_bad_records(), {});
  for (const int threads : {1, 4}) {
    ReaderOptions options;
    options.threads = threads;
    const BatchReader reader = reader_of(split, {}, options);
    HostBatch batch;
    const auto taken = reader.read(file_order(10), 0, 0, 10, batch);
    ASSERT_FALSE(taken.ok());
    EXPECT_EQ(taken.error().message, "labels: record 2: bad");
    EXPECT_EQ(batch.samples(), 0);
  }
}

// Twelve JPEG photographs of different sizes in a TFRecord.
class Photographs : public ::testing::Test {
 protected:
  Photographs() {
    std::string file;
    for (int i = 0; i < 12; ++i) {
      file += frame_tfrecord(example(jpeg(gradient(60 + 7 * i, 150 - 9 * i, 20 * i)), i % 5));
    }
    files_.put("/d/train.tfrecord", file);
    spec_ = photographs("tfrecord", 32, 24);
    pair_ = std::make_unique<SplitPair>(*open_dataset(files_, spec_, 5));
  }

  // All samples of some epochs, read by `ranks` readers in turns.
  std::vector<std::pair<std::int64_t, std::vector<float>>> table(int ranks, int threads) const {
    std::vector<std::pair<std::int64_t, std::vector<float>>> all;
    std::vector<BatchReader> readers;
    for (int rank = 0; rank < ranks; ++rank) {
      ReaderOptions options;
      options.threads = threads;
      options.augment = true;
      options.seed = 77;
      readers.push_back(reader_of(*pair_->train, spec_, options));
    }
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      const EpochOrder order(12, Shuffle::kOn, 42, epoch);
      for (std::int64_t at = 0, turn = 0; at < 12; at += 12 / ranks, ++turn) {
        HostBatch batch;
        const BatchReader& reader = readers[static_cast<std::size_t>(turn % ranks)];
        EXPECT_TRUE(reader.read(order, epoch, at, at + 12 / ranks, batch).ok());
        const std::size_t size = batch.features.size() / batch.labels.size();
        for (std::size_t i = 0; i < batch.labels.size(); ++i) {
          const auto* first = batch.features.data() + i * size;
          all.emplace_back(batch.ids[i] + static_cast<std::int64_t>(100 * epoch),
                           std::vector<float>(first, first + size));
        }
      }
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  base::FakeFiles files_;
  contract::DatasetSpec spec_;
  std::unique_ptr<SplitPair> pair_;
};

// TR-13.
TEST_F(Photographs, TR_13_crops_and_mirrors_depend_on_no_rank_and_no_thread) {
  spec_.augment = {Augmentation::kRandomResizedCrop, Augmentation::kHorizontalFlip};
  const auto expected = table(1, 1);
  ASSERT_EQ(expected.size(), 24u);
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(expected[i].first + 100, expected[i + 12].first);
    EXPECT_NE(expected[i].second, expected[i + 12].second);  // epochs differ
  }
  for (const int ranks : {1, 2, 4}) {
    for (const int threads : {1, 4}) EXPECT_EQ(table(ranks, threads), expected) << ranks << " x " << threads;
  }
}

TEST_F(Photographs, a_cache_changes_no_bit) {
  for (const auto& augment :
       {std::vector<Augmentation>{},
        std::vector<Augmentation>{Augmentation::kRandomResizedCrop, Augmentation::kHorizontalFlip},
        std::vector<Augmentation>{Augmentation::kRandomCrop, Augmentation::kHorizontalFlip}}) {
    spec_.augment = augment;
    spec_.cache = contract::CacheMode::kNone;
    const auto expected = table(2, 1);
    for (const auto mode : {contract::CacheMode::kMemory, contract::CacheMode::kDisk}) {
      spec_.cache = mode;
      EXPECT_EQ(table(2, 2), expected);
    }
  }
}

TEST_F(Photographs, with_a_cache_later_epochs_read_no_file) {
  for (const auto mode : {contract::CacheMode::kMemory, contract::CacheMode::kDisk}) {
    spec_.cache = mode;
    const BatchReader reader = reader_of(*pair_->train, spec_);
    HostBatch first, second;
    const auto taken = reader.read(file_order(12), 0, 0, 12, first);
    ASSERT_TRUE(taken.ok());
    const int calls = files_.calls();
    const auto again = reader.read(file_order(12), 1, 0, 12, second);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(files_.calls(), calls);
    EXPECT_EQ(first.features, second.features);
    EXPECT_EQ(first.labels, second.labels);
    EXPECT_EQ(taken->bytes_read, again->bytes_read);
    EXPECT_GE(reader.cached_bytes(), 12u * 32 * 24 * 3);
  }
}

TEST_F(Photographs, a_full_cache_takes_nothing_more_and_nothing_is_wrong) {
  spec_.cache = contract::CacheMode::kMemory;
  ReaderOptions options;
  options.cache_limit_bytes = 5 * (32 * 24 * 3 + 96);
  const BatchReader reader = reader_of(*pair_->train, spec_, options);
  const BatchReader plain = reader_of(*pair_->train, photographs("tfrecord", 32, 24));
  HostBatch cached, expected;
  ASSERT_TRUE(plain.read(file_order(12), 0, 0, 12, expected).ok());
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    ASSERT_TRUE(reader.read(file_order(12), epoch, 0, 12, cached).ok());
    EXPECT_EQ(cached.features, expected.features);
  }
  EXPECT_EQ(reader.cached_bytes(), options.cache_limit_bytes);
}

TEST_F(Photographs, a_disk_cache_without_a_folder_is_no_cache_and_no_error) {
  spec_.cache = contract::CacheMode::kDisk;
  ReaderOptions options;
  options.cache_folder = "/nonexistent/evenkeel";
  const BatchReader reader = reader_of(*pair_->train, spec_, options);
  HostBatch batch;
  ASSERT_TRUE(reader.read(file_order(12), 0, 0, 12, batch).ok());
  EXPECT_EQ(reader.cached_bytes(), 0u);
}

// Fails as it is told, and counts how often each record is asked for.
class MoodySplit : public Split {
 public:
  explicit MoodySplit(std::int64_t samples) {
    form_ = RecordForm::kPixels;
    stored_shape_ = {1, 1, 1};
    info_ = {"train", samples, {1, 1, 1}, 10};
  }
  std::uint64_t resident_bytes() const override { return 0; }
  std::string where(std::int64_t id) const override { return "file: record " + std::to_string(id); }
  bool storage_answers(std::int64_t) const override { return answers; }
  base::Result<StoredRecord> read(std::int64_t id) const override {
    const int times = ++reads[id];
    const auto mood = moods.find(id);
    if (mood != moods.end() && times <= mood->second.first)
      return base::Error{mood->second.second, where(id) + ": no"};
    StoredRecord record;
    record.label = static_cast<std::int32_t>(id % 10);
    record.borrow({&pixel_, 1});
    return record;
  }

  mutable std::map<std::int64_t, int> reads;
  std::map<std::int64_t, std::pair<int, ErrorCode>> moods;  // id -> how often it fails, and how
  bool answers = true;

 private:
  std::uint8_t pixel_ = 200;
};

contract::DatasetSpec skip(std::int64_t most) {
  contract::DatasetSpec spec;
  spec.bad_record_action = contract::BadRecordAction::kSkip;
  spec.max_skipped = most;
  return spec;
}

TEST(BatchReader, a_record_is_tried_three_times_before_it_is_given_up) {
  MoodySplit split(4);
  split.moods = {{0, {2, ErrorCode::kCorruptData}}, {1, {2, ErrorCode::kIo}}, {2, {100, ErrorCode::kIo}}};
  const BatchReader reader = reader_of(split, skip(1));
  HostBatch batch;
  const auto taken = reader.read(file_order(4), 0, 0, 4, batch);
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  EXPECT_EQ(taken->consumed, 3);
  EXPECT_EQ(taken->skipped_ids, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(split.reads, (std::map<std::int64_t, int>{{0, 3}, {1, 3}, {2, 3}, {3, 1}}));
  EXPECT_EQ(batch.labels, (std::vector<std::int32_t>{0, 1, kSkippedLabel, 3}));
}

TEST(BatchReader, a_record_that_was_given_up_is_not_read_again) {
  MoodySplit split(4);
  split.moods = {{2, {3, ErrorCode::kCorruptData}}};  // well after that: it is not looked at
  const BatchReader reader = reader_of(split, skip(2));
  HostBatch batch;
  for (const std::uint64_t epoch : {0u, 1u, 2u}) {
    const auto taken = reader.read(file_order(4), epoch, 0, 4, batch);
    ASSERT_TRUE(taken.ok());
    EXPECT_EQ(taken->skipped, 1);
  }
  EXPECT_EQ(split.reads.at(2), 3);
  // What another rank could not read counts, and is not tried here.
  reader.skip_from_now_on({3});
  EXPECT_EQ(reader.read(file_order(4), 3, 0, 4, batch)->skipped_ids, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(split.reads.at(3), 3);
  EXPECT_EQ(reader.skipped_ids(), (std::vector<std::int64_t>{2, 3}));
}

TEST(BatchReader, the_record_is_at_fault_where_its_file_answers_and_the_storage_where_it_does_not) {
  MoodySplit split(2);
  split.moods = {{1, {100, ErrorCode::kIo}}};
  HostBatch batch;
  const auto record = reader_of(split).read(file_order(2), 0, 0, 2, batch);
  ASSERT_FALSE(record.ok());
  EXPECT_EQ(record.error().code, ErrorCode::kCorruptData);
  EXPECT_NE(record.error().message.find("file: record 1: no: tried 3 times"), std::string::npos);
  split.answers = false;
  EXPECT_EQ(reader_of(split, skip(5)).read(file_order(2), 0, 0, 2, batch).error().code, ErrorCode::kIo);
}

TEST(BatchReader, ranges_are_read_one_behind_the_other) {
  const ResidentSplit split(tiny(20), {});
  HostBatch batch;
  const auto taken = reader_of(split).read(file_order(20), 0, {{3, 5}, {17, 18}, {0, 0}, {9, 10}}, batch);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(batch.ids, (std::vector<std::int64_t>{3, 4, 17, 9}));
  EXPECT_EQ(taken->consumed, 4);
}

TEST(StandIn, a_skipped_record_shows_the_next_sample_of_its_group_and_nothing_else_changes) {
  HostBatch batch;
  batch.labels = {kSkippedLabel, 1, 2, kSkippedLabel, kSkippedLabel, kSkippedLabel, 6};
  batch.features = {0, 0, 1, 1, 2, 2, 0, 0, 0, 0, 0, 0, 6, 6};
  batch.ids = {10, 11, 12, 13, 14, 15, 16};
  HostBatch whole = batch;
  stand_in_for_skipped(batch, 2);
  // Groups 0-1, 2-3, 4-5 (nobody is left: the next of the batch), 6.
  EXPECT_EQ(batch.features, (std::vector<float>{1, 1, 1, 1, 2, 2, 2, 2, 6, 6, 6, 6, 6, 6}));
  EXPECT_EQ(batch.labels, whole.labels);
  EXPECT_EQ(batch.ids, whole.ids);
  stand_in_for_skipped(whole, 0);
  EXPECT_EQ(whole.features, (std::vector<float>{1, 1, 1, 1, 2, 2, 6, 6, 6, 6, 6, 6, 6, 6}));
  HostBatch nothing;
  nothing.labels = {kSkippedLabel};
  nothing.features = {0, 0};
  stand_in_for_skipped(nothing, 4);
  EXPECT_EQ(nothing.features, (std::vector<float>{0, 0}));
}

}  // namespace
}  // namespace evenkeel::trainer
