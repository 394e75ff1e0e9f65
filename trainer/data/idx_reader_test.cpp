#include "trainer/data/idx_reader.h"

#include <gtest/gtest.h>

#include "base/files_fake.h"
#include "trainer/data/gzip_fixture.h"

namespace evenkeel::trainer {
namespace {

using base::ErrorCode;
using testing::gzip;

std::string be32(std::uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text.push_back(static_cast<char>(value >> shift));
  return text;
}

// n images of h x w; pixel value = a running number.
std::string images(std::uint32_t n, std::uint32_t h, std::uint32_t w) {
  std::string bytes = be32(0x803) + be32(n) + be32(h) + be32(w);
  for (std::uint32_t i = 0; i < n * h * w; ++i) bytes.push_back(static_cast<char>(i));
  return bytes;
}

std::string labels(const std::vector<int>& values) {
  std::string bytes = be32(0x801) + be32(static_cast<std::uint32_t>(values.size()));
  for (const int v : values) bytes.push_back(static_cast<char>(v));
  return bytes;
}

void put_split(base::FakeFiles& files, const std::string& prefix, const std::string& image_bytes,
               const std::string& label_bytes) {
  files.put("/d/" + prefix + "-images-idx3-ubyte", image_bytes);
  files.put("/d/" + prefix + "-labels-idx1-ubyte", label_bytes);
}

void expect_corrupt(const base::Result<Dataset>& result, const std::vector<std::string>& parts) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kCorruptData);
  for (const std::string& part : parts) {
    EXPECT_NE(result.error().message.find(part), std::string::npos)
        << "\"" << part << "\" in: " << result.error().message;
  }
}

base::Result<Dataset> read_with(const std::string& image_bytes, const std::string& label_bytes,
                                IdxOptions options = {}) {
  base::FakeFiles files;
  put_split(files, "train", image_bytes, label_bytes);
  return read_idx(files, "/d", "train", options);
}

TEST(IdxReader, reads_shape_pixels_and_labels) {
  const auto data = read_with(images(3, 2, 4), labels({0, 2, 1}));
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(data->samples, 3);
  EXPECT_EQ(data->sample_shape, (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(data->num_classes, 3);
  EXPECT_EQ(data->labels, (std::vector<std::int32_t>{0, 2, 1}));
  EXPECT_EQ(data->image(2)[0], 16);
  EXPECT_EQ(data->image(2)[7], 23);
}

TEST(IdxReader, reads_compressed_files_alike) {
  base::FakeFiles files;
  files.put("/d/t10k-images-idx3-ubyte.gz", gzip(images(50, 28, 28)));
  files.put("/d/t10k-labels-idx1-ubyte.gz", gzip(labels(std::vector<int>(50, 1))));
  const auto data = read_idx(files, "/d", "test", {});
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(data->samples, 50);
  EXPECT_EQ(data->image(1)[0], 784 % 256);
}

// TR-39.
TEST(IdxReader, a_label_out_of_range_is_named_by_file_record_offset_label_and_classes) {
  IdxOptions options;
  options.num_classes = 2;
  expect_corrupt(read_with(images(5, 1, 1), labels({0, 1, 0, 2, 1}), options),
                 {"train-labels-idx1-ubyte", "record 3", "byte offset 11", "label 2", "2 classes"});
}

TEST(IdxReader, skips_bad_labels_up_to_the_limit) {
  IdxOptions options;
  options.num_classes = 2;
  options.bad_record_action = contract::BadRecordAction::kSkip;
  options.max_skipped = 1;
  const auto one = read_with(images(5, 1, 1), labels({0, 1, 0, 2, 1}), options);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->skipped, 1);
  EXPECT_EQ(one->labels[3], kSkippedLabel);
  expect_corrupt(read_with(images(5, 1, 1), labels({0, 3, 0, 2, 1}), options),
                 {"record 3", "maxSkipped = 1"});
}

TEST(IdxReader, damaged_files_are_named_with_offset_and_cause) {
  const std::string good = images(4, 2, 2), good_labels = labels({0, 1, 0, 1});
  expect_corrupt(read_with("", good_labels), {"train-images", "at byte 0", "empty"});
  expect_corrupt(read_with(good.substr(0, 3), good_labels), {"at byte 3", "truncated"});
  expect_corrupt(read_with(good.substr(0, 10), good_labels), {"at byte 10", "truncated", "header"});
  expect_corrupt(read_with(good.substr(0, 16 + 9), good_labels),
                 {"at byte 25", "truncated in record 2", "4 x 2 x 2 = 32 bytes"});
  expect_corrupt(read_with(good + "x", good_labels), {"at byte 32", "behind the last record"});
  expect_corrupt(read_with(good_labels, good_labels), {"0x00000801", "0x00000803", "exchanged"});
  expect_corrupt(read_with("GIF89a..........", good_labels), {"magic number 0x47494638"});
  expect_corrupt(read_with(good, good_labels.substr(0, 11)), {"train-labels", "truncated in record 3"});
  expect_corrupt(read_with(good, labels({0, 1, 0})), {"4 images", "3 labels"});
  expect_corrupt(read_with(be32(0x803) + be32(2) + be32(0) + be32(2), good_labels),
                 {"at byte 8", "dimension 2 is 0"});
}

TEST(IdxReader, claims_beyond_the_limits_are_refused_before_memory_is_taken) {
  const std::string huge = be32(0x803) + be32(0x7fffffff) + be32(0x7fffffff) + be32(0x7fffffff);
  expect_corrupt(read_with(huge, labels({0})), {"limit", "at byte 8"});
  expect_corrupt(read_with(be32(0x803) + be32(0xffffffff) + be32(1) + be32(1), labels({0})),
                 {"limit of 2147483648"});
  const auto bomb = gunzip_idx(gzip(huge), "bomb.gz", std::uint64_t{8} << 30);
  ASSERT_FALSE(bomb.ok());
  EXPECT_EQ(bomb.error().code, ErrorCode::kCorruptData);
}

TEST(IdxReader, compressed_content_longer_than_announced_stops_at_the_first_byte_too_many) {
  const auto content =
      gunzip_idx(gzip(images(1, 1, 1) + std::string(50 << 20, '\0')), "x.gz", std::uint64_t{8} << 30);
  ASSERT_TRUE(content.ok());
  EXPECT_EQ(content->size(), 18u);
  EXPECT_FALSE(parse_idx_images(*content, "x.gz", 1 << 20).ok());
}

TEST(IdxReader, damage_to_a_compressed_file_is_noticed_at_every_byte_of_its_end) {
  const std::string good = gzip(images(20, 5, 5));
  ASSERT_TRUE(gunzip_idx(good, "x.gz", 1 << 20).ok());
  for (const std::size_t length :
       {good.size() - 1, good.size() - 8, good.size() / 2, std::size_t{1}, std::size_t{0}}) {
    const auto cut = gunzip_idx(good.substr(0, length), "x.gz", 1 << 20);
    ASSERT_FALSE(cut.ok()) << length;
    EXPECT_EQ(cut.error().code, ErrorCode::kCorruptData);
  }
  std::string wrong_crc = good;
  wrong_crc[good.size() - 6] ^= 1;
  EXPECT_FALSE(gunzip_idx(wrong_crc, "x.gz", 1 << 20).ok());
  EXPECT_FALSE(gunzip_idx(good + "tail", "x.gz", 1 << 20).ok());
  // Several streams in one file are one content.
  const std::string content = images(20, 5, 5);
  const std::string two = gzip(content.substr(0, 100)) + gzip(content.substr(100));
  EXPECT_EQ(gunzip_idx(two, "x.gz", 1 << 20).value(), content);
  EXPECT_FALSE(gunzip_idx(two.substr(0, two.size() - 9), "x.gz", 1 << 20).ok());
  EXPECT_FALSE(gunzip_idx(two + "\x1f", "x.gz", 1 << 20).ok());
  EXPECT_FALSE(gunzip_idx("no gzip at all", "x.gz", 1 << 20).ok());
}

TEST(IdxReader, what_is_missing_is_named) {
  base::FakeFiles files;
  const auto no_folder = read_idx(files, "/d", "train", {});
  ASSERT_FALSE(no_folder.ok());
  EXPECT_EQ(no_folder.error().code, ErrorCode::kNotFound);
  EXPECT_NE(no_folder.error().message.find("/d"), std::string::npos);
  files.put("/d/other", "");
  const auto no_file = read_idx(files, "/d", "val", {});
  ASSERT_FALSE(no_file.ok());
  EXPECT_EQ(no_file.error().code, ErrorCode::kNotFound);
  EXPECT_NE(no_file.error().message.find("/d/val-labels-idx1-ubyte.gz"), std::string::npos);
}

}  // namespace
}  // namespace evenkeel::trainer
