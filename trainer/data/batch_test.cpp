#include "trainer/data/batch.h"

#include <gtest/gtest.h>

#include "base/hash.h"

namespace evenkeel::trainer {
namespace {

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

TEST(BatchReader, reads_the_positions_of_the_order) {
  const Dataset data = tiny(200);
  const auto reader = BatchReader::make(data, {}, {});
  ASSERT_TRUE(reader.ok());
  const EpochOrder order(200, Shuffle::kOn, 42, 0);
  HostBatch batch;
  const BatchTaken taken = reader->read(order, 10, 14, batch);
  EXPECT_EQ(taken.consumed, 4);
  EXPECT_EQ(taken.bytes_read, 12u);
  ASSERT_EQ(batch.samples(), 4);
  for (std::uint64_t i = 0; i < 4; ++i) {
    const auto id = order.id_at(10 + i);
    EXPECT_FLOAT_EQ(batch.features[2 * i], static_cast<float>(id) / 255.0f);
    EXPECT_FLOAT_EQ(batch.features[2 * i + 1], static_cast<float>(255 - id) / 255.0f);
    EXPECT_EQ(batch.labels[i], static_cast<std::int32_t>(id % 3));
  }
}

TEST(BatchReader, normalises_by_mean_and_deviation) {
  const Dataset data = tiny(52);
  const auto reader = BatchReader::make(data, {0.5}, {0.25});
  ASSERT_TRUE(reader.ok());
  HostBatch batch;
  (void)reader->read(EpochOrder(52, Shuffle::kOff, 0, 0), 51, 52, batch);  // 51 / 255 = 0.2
  EXPECT_FLOAT_EQ(batch.features[0], -1.2f);
  EXPECT_FLOAT_EQ(batch.features[1], 1.2f);
}

TEST(BatchReader, refuses_a_normalisation_that_cannot_be) {
  const Dataset data = tiny(2);
  EXPECT_EQ(BatchReader::make(data, {0.1, 0.2, 0.3}, {}).error().code, base::ErrorCode::kInvalidInput);
  EXPECT_EQ(BatchReader::make(data, {}, {0.0}).error().code, base::ErrorCode::kInvalidInput);
}

TEST(BatchReader, hash_of_ids_does_not_depend_on_ranges_or_order) {
  const Dataset data = tiny(101);
  const auto reader = BatchReader::make(data, {}, {});
  std::uint64_t expected = 0;
  for (std::uint64_t id = 0; id < 101; ++id) expected += base::mix64(id);
  for (const std::uint64_t epoch : {0u, 1u}) {
    const EpochOrder order(101, Shuffle::kOn, 42, epoch);
    HostBatch batch;
    std::uint64_t sum = 0;
    for (std::int64_t at = 0; at < 101; at += 10) {
      sum += reader->read(order, at, std::min<std::int64_t>(101, at + 10), batch).id_hash;
    }
    EXPECT_EQ(sum, expected);
  }
}

TEST(BatchReader, an_empty_range_gives_an_empty_batch) {
  const Dataset data = tiny(5);
  const auto reader = BatchReader::make(data, {}, {});
  HostBatch batch;
  const BatchTaken taken = reader->read(EpochOrder(5, Shuffle::kOn, 1, 0), 5, 5, batch);
  EXPECT_EQ(taken.consumed + taken.skipped, 0);
  EXPECT_EQ(taken.id_hash, 0u);
  EXPECT_EQ(batch.samples(), 0);
}

TEST(BatchReader, counts_skipped_records_apart_and_appends_ranges) {
  Dataset data = tiny(10);
  data.labels[4] = kSkippedLabel;
  const auto reader = BatchReader::make(data, {}, {});
  HostBatch batch;
  const EpochOrder order(10, Shuffle::kOff, 1, 0);
  const BatchTaken first = reader->read(order, 3, 6, batch);
  const BatchTaken second = reader->append(order, 8, 10, batch);
  EXPECT_EQ(first.consumed, 2);
  EXPECT_EQ(first.skipped, 1);
  EXPECT_EQ(second.consumed, 2);
  EXPECT_EQ(batch.labels, (std::vector<std::int32_t>{0, kSkippedLabel, 2, 2, 0}));
  EXPECT_EQ(batch.features.size(), 10u);
}

}  // namespace
}  // namespace evenkeel::trainer
