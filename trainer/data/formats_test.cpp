// Every format through open_dataset() and a batch reader: the same few pictures, the same policies.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/files_fake.h"
#include "trainer/data/batch.h"
#include "trainer/data/cifar_reader.h"
#include "trainer/data/open_dataset.h"
#include "trainer/data/test_pictures.h"

namespace evenkeel::trainer {
namespace {

using base::ErrorCode;
using contract::BadRecordAction;
using namespace testing;  // NOLINT: test helpers

void expect_error(const base::Error& error, ErrorCode code, const std::vector<std::string>& parts) {
  EXPECT_EQ(error.code, code) << error.message;
  for (const std::string& part : parts) {
    EXPECT_NE(error.message.find(part), std::string::npos) << "\"" << part << "\" in: " << error.message;
  }
}

base::Result<BatchTaken> epoch(base::FakeFiles& files, const contract::DatasetSpec& spec, int num_classes,
                               HostBatch& batch) {
  EVENKEEL_ASSIGN(const SplitPair pair, open_dataset(files, spec, num_classes));
  EVENKEEL_ASSIGN(const BatchReader reader, BatchReader::make(*pair.train, spec, {}));
  const std::int64_t samples = pair.train->info().samples;
  return reader.read(EpochOrder(static_cast<std::uint64_t>(samples), Shuffle::kOff, 0, 0), 0, 0, samples,
                     batch);
}

// ---- cifar10

std::string cifar_record(int label, std::uint8_t red, std::uint8_t green, std::uint8_t blue) {
  std::string record(1, static_cast<char>(label));
  for (const std::uint8_t value : {red, green, blue}) record += std::string(1024, static_cast<char>(value));
  return record;
}

contract::DatasetSpec cifar_spec() {
  contract::DatasetSpec spec;
  spec.format = "cifar10";
  spec.path = "/d";
  return spec;
}

TEST(Cifar, planes_become_interleaved_pixels_and_files_are_in_order) {
  base::FakeFiles files;
  files.put("/d/data_batch_2.bin", cifar_record(9, 0, 0, 255));
  files.put("/d/data_batch_1.bin", cifar_record(3, 255, 51, 0) + cifar_record(0, 1, 2, 3));
  files.put("/d/test_batch.bin", cifar_record(1, 0, 0, 0));
  HostBatch batch;
  const auto taken = epoch(files, cifar_spec(), 0, batch);
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  EXPECT_EQ(batch.labels, (std::vector<std::int32_t>{3, 0, 9}));
  EXPECT_EQ(batch.features.size(), 3u * 32 * 32 * 3);
  EXPECT_FLOAT_EQ(batch.features[0], 1.0f);
  EXPECT_FLOAT_EQ(batch.features[1], 0.2f);
  EXPECT_FLOAT_EQ(batch.features[2], 0.0f);
  const auto pair = open_dataset(files, cifar_spec(), 0);
  EXPECT_EQ(pair->train->info().num_classes, 10);
  EXPECT_EQ(pair->train->info().sample_shape, (std::vector<std::int64_t>{32, 32, 3}));
  EXPECT_EQ(pair->eval->info().samples, 1);
  EXPECT_EQ(pair->train->where(2), "/d/data_batch_2.bin: record 0, byte offset 0");
}

TEST(Cifar, damage_is_named_by_file_record_and_offset) {
  base::FakeFiles files;
  contract::DatasetSpec spec = cifar_spec();
  spec.eval_split = "";
  HostBatch batch;
  expect_error(epoch(files, spec, 0, batch).error(), ErrorCode::kNotFound, {"/d", "does not exist"});
  files.put("/d/other", "");
  expect_error(epoch(files, spec, 0, batch).error(), ErrorCode::kNotFound,
               {"data_batch_*.bin", "train*.bin"});
  files.put("/d/train.bin", cifar_record(3, 0, 0, 0) + "xy");
  expect_error(epoch(files, spec, 0, batch).error(), ErrorCode::kCorruptData,
               {"/d/train.bin", "record 1", "byte offset 3073", "truncated", "3075 bytes"});
  files.put("/d/train.bin", "");
  expect_error(epoch(files, spec, 0, batch).error(), ErrorCode::kCorruptData, {"/d/train.bin", "empty"});
  files.put("/d/train.bin", cifar_record(3, 0, 0, 0) + cifar_record(10, 0, 0, 0));
  expect_error(epoch(files, spec, 0, batch).error(), ErrorCode::kCorruptData,
               {"record 1, byte offset 3073", "label 10", "10 classes"});
  spec.bad_record_action = BadRecordAction::kSkip;
  spec.max_skipped = 1;
  EXPECT_EQ(epoch(files, spec, 0, batch)->skipped, 1);
}

TEST(Cifar, image_size_resizes_the_whole_picture) {
  base::FakeFiles files;
  files.put("/d/train.bin", cifar_record(3, 200, 100, 50));
  contract::DatasetSpec spec = cifar_spec();
  spec.eval_split = "";
  spec.image_size = {8, 48};
  HostBatch batch;
  ASSERT_TRUE(epoch(files, spec, 0, batch).ok());
  EXPECT_EQ(batch.features.size(), 8u * 48 * 3);
  EXPECT_FLOAT_EQ(batch.features.back(), 50.0f / 255);
}

// ---- imagefolder

class Folder : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& content) { files_.put("/d/" + path, content); }
  contract::DatasetSpec spec_ = photographs("imagefolder", 8, 8);
  base::FakeFiles files_;
  HostBatch batch_;
};

TEST_F(Folder, classes_are_directories_in_the_order_of_bytes) {
  put("train/b/1.png", png(solid(8, 8, {0, 0, 255})));
  put("train/B/2.JPG", jpeg(solid(8, 8, {0, 255, 0})));
  put("train/a/3.jpeg", jpeg(solid(8, 8, {255, 0, 0})));
  put("train/a/.hidden.jpg", "no picture");
  put("train/a/notes.txt", "no picture");
  put("validation/a/4.png", png(solid(8, 8, {1, 1, 1})));
  spec_.eval_split = "validation";
  const auto pair = open_dataset(files_, spec_, 0);
  ASSERT_TRUE(pair.ok()) << pair.error().message;
  EXPECT_EQ(pair->train->info().num_classes, 3);
  ASSERT_TRUE(epoch(files_, spec_, 0, batch_).ok());
  EXPECT_EQ(batch_.labels, (std::vector<std::int32_t>{0, 1, 2}));  // B, a, b
  EXPECT_NEAR(batch_.features[1], 1.0f, 0.02f);
  EXPECT_NEAR(batch_.features[192], 1.0f, 0.02f);
  EXPECT_EQ(pair->eval->read(0)->label, 1);
  EXPECT_EQ(pair->eval->where(0), "/d/validation/a/4.png: record 0, byte offset 0");
}

TEST_F(Folder, classes_that_do_not_fit_are_named) {
  put("train/a/1.png", png(solid(8, 8, {0, 0, 0})));
  put("train/b/1.png", png(solid(8, 8, {0, 0, 0})));
  put("test/c/1.png", png(solid(8, 8, {0, 0, 0})));
  expect_error(open_dataset(files_, spec_, 1).error(), ErrorCode::kCorruptData,
               {"/d/train", "2 class", "1 classes"});
  EXPECT_EQ(open_dataset(files_, spec_, 7)->train->info().num_classes, 7);
  spec_.eval_split = "test";
  expect_error(open_dataset(files_, spec_, 0).error(), ErrorCode::kCorruptData,
               {"/d/test/c", "training split"});
  spec_.eval_split = "elsewhere";
  expect_error(open_dataset(files_, spec_, 0).error(), ErrorCode::kNotFound, {"/d/elsewhere"});
}

TEST_F(Folder, nothing_to_train_on_is_an_error) {
  put("train/a/readme.txt", "");
  expect_error(open_dataset(files_, spec_, 0).error(), ErrorCode::kCorruptData, {"0 usable samples"});
  spec_.image_size = {};
  expect_error(open_dataset(files_, spec_, 0).error(), ErrorCode::kInvalidInput, {"dataset.image.size"});
}

// TR-37: twenty JPEGs, one cut.
TEST_F(Folder, TR_37_a_truncated_picture_is_a_bad_record) {
  const std::string whole = jpeg(gradient(60, 80), {90, 0, TJSAMP_420});
  for (const int percent : {10, 50, 99}) {
    for (int i = 0; i < 20; ++i) {
      const bool cut = i == 13;
      put("train/a/" + std::to_string(10 + i) + ".jpg",
          whole.substr(0, cut ? whole.size() * static_cast<std::size_t>(percent) / 100 : whole.size()));
    }
    spec_.bad_record_action = BadRecordAction::kFail;
    spec_.max_skipped = 0;
    expect_error(epoch(files_, spec_, 0, batch_).error(), ErrorCode::kCorruptData,
                 {"/d/train/a/23.jpg", "record 13"});
    spec_.bad_record_action = BadRecordAction::kSkip;
    spec_.max_skipped = 1;
    const auto taken = epoch(files_, spec_, 0, batch_);
    ASSERT_TRUE(taken.ok()) << taken.error().message;
    EXPECT_EQ(taken->consumed, 19);
    EXPECT_EQ(taken->skipped, 1);
    EXPECT_EQ(batch_.labels[13], kSkippedLabel);
    const auto first = batch_.features.begin() + 13 * 192;
    EXPECT_TRUE(std::all_of(first, first + 192, [](float value) { return value == 0.0f; }));
  }
}

// TR-38.
TEST_F(Folder, TR_38_an_empty_file_obeys_the_policy) {
  for (int i = 0; i < 10; ++i) {
    put("train/a/" + std::to_string(i) + ".jpg", i == 4 ? "" : jpeg(solid(8, 8, {1, 2, 3})));
  }
  expect_error(epoch(files_, spec_, 0, batch_).error(), ErrorCode::kCorruptData,
               {"/d/train/a/4.jpg", "empty"});
  spec_.bad_record_action = BadRecordAction::kSkip;
  spec_.max_skipped = 1;
  EXPECT_EQ(epoch(files_, spec_, 0, batch_)->skipped, 1);
}

TEST_F(Folder, a_failing_disk_is_no_bad_record) {
  put("train/a/1.png", png(solid(8, 8, {0, 0, 0})));
  spec_.bad_record_action = BadRecordAction::kSkip;
  spec_.max_skipped = 5;
  const auto pair = open_dataset(files_, spec_, 0);
  const auto reader = BatchReader::make(*pair->train, spec_, {});
  files_.fail_call(1, {ErrorCode::kIo, "Input/output error"});  // a hiccup: it is read again
  EXPECT_TRUE(reader->read(EpochOrder(1, Shuffle::kOff, 0, 0), 0, 0, 1, batch_).ok());
  files_.crash();
  const auto taken = reader->read(EpochOrder(1, Shuffle::kOff, 0, 0), 0, 0, 1, batch_);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, ErrorCode::kIo);
}

// ---- webdataset

class Tars : public ::testing::Test {
 protected:
  static std::string sample(const std::string& key, int label) {
    return tar_member(key + ".jpg", jpeg(solid(8, 8, {200, 100, 0}))) +
           tar_member(key + ".cls", std::to_string(label) + "\n");
  }
  std::string failure(const std::string& content) {
    files_.put("/d/train-0.tar", content);
    const auto taken = epoch(files_, spec_, 5, batch_);
    return taken.ok() ? std::string("no error") : taken.error().message;
  }
  void expect_failure(const std::string& content, const std::vector<std::string>& parts) {
    const std::string message = failure(content);
    for (const std::string& part : parts) {
      EXPECT_NE(message.find(part), std::string::npos) << "\"" << part << "\" in: " << message;
    }
  }
  contract::DatasetSpec spec_ = photographs("webdataset", 8, 8);
  base::FakeFiles files_;
  HostBatch batch_;
};

// TR-06: an archive of 20 samples and an empty one; also one without a byte.
TEST_F(Tars, TR_06_an_empty_archive_is_no_error) {
  std::string twenty;
  for (int i = 0; i < 20; ++i) twenty += sample("s" + std::to_string(i), i % 5);
  files_.put("/d/train-0.tar", twenty + tar_end());
  files_.put("/d/train-1.tar", std::string(10'240, '\0'));
  files_.put("/d/train-2.tar", "");
  const auto taken = epoch(files_, spec_, 0, batch_);
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  EXPECT_EQ(taken->consumed, 20);
  EXPECT_EQ(open_dataset(files_, spec_, 0)->train->info().num_classes, 5);
}

// TR-07.
TEST_F(Tars, TR_07_archives_of_different_length_are_one_sequence) {
  int number = 0;
  for (const int count : {10, 9, 9, 5, 4}) {
    std::string tar;
    for (int i = 0; i < count; ++i) tar += sample("x/" + std::to_string(i), number % 5);
    files_.put("/d/train-" + std::to_string(number++) + ".tar", tar + tar_end());
  }
  const auto pair = open_dataset(files_, spec_, 5);
  ASSERT_TRUE(pair.ok()) << pair.error().message;
  EXPECT_EQ(pair->train->info().samples, 37);
  EXPECT_EQ(pair->train->read(36)->label, 4);
  EXPECT_EQ(pair->train->where(36).rfind("/d/train-4.tar: record 3, ", 0), 0u) << pair->train->where(36);
}

TEST_F(Tars, keys_end_at_the_first_dot_and_other_members_are_ignored) {
  const std::string picture = png(solid(8, 8, {0, 0, 255}));
  files_.put("/d/train.tar", tar_member("./dir.d/a.seg.json", "{}") + tar_member("./dir.d/a.CLS", " 3 ") +
                                 tar_member("dir", "", '5') + tar_member("README", "hello") +
                                 tar_member("./dir.d/a.PNG", picture) + tar_end());
  const auto taken = epoch(files_, spec_, 5, batch_);
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  EXPECT_EQ(batch_.labels, (std::vector<std::int32_t>{3}));
  EXPECT_EQ(batch_.features[2], 1.0f);
}

TEST_F(Tars, long_names_of_gnu_and_pax_are_read) {
  const std::string name(150, 'n');
  const std::string picture = png(solid(8, 8, {0, 0, 255}));
  const std::string path_line = "path=" + name + ".cls\n";
  const std::string pax = std::to_string(path_line.size() + 4) + " " + path_line;
  files_.put("/d/train.tar", tar_member("././@LongLink", name + ".png" + std::string(1, '\0'), 'L') +
                                 tar_member("short", picture) + tar_member("PaxHeaders/x", pax, 'x') +
                                 tar_member("short", "2") + tar_end());
  const auto taken = epoch(files_, spec_, 5, batch_);
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  EXPECT_EQ(batch_.labels, (std::vector<std::int32_t>{2}));
}

TEST_F(Tars, samples_that_are_not_whole_are_bad_records) {
  const std::string picture = jpeg(solid(8, 8, {0, 0, 255}));
  const std::string end = tar_end();
  expect_failure(tar_member("a.jpg", picture) + end, {"record 0, byte offset 512", "sample a has no .cls"});
  expect_failure(sample("z", 0) + tar_member("a.cls", "1") + end, {"record 1", "sample a has no picture"});
  expect_failure(sample("a", 1) + tar_member("a.png", picture) + end, {"more than one picture"});
  expect_failure(sample("a", 1) + tar_member("a.cls", "1") + end, {"more than one .cls"});
  expect_failure(sample("a", 5) + end, {"record 0", "label 5 is out of range, there are 5 classes"});
  expect_failure(sample("a", -1) + end, {"label -1 is out of range"});
  expect_failure(tar_member("a.jpg", picture) + tar_member("a.cls", "cat") + end,
                 {"a.cls is no number: \"cat\""});
  expect_failure(tar_member("a.jpg", "") + tar_member("a.cls", "1") + end, {"the image is empty"});
  expect_failure(tar_member("a.jpg", "", '2') + tar_member("a.cls", "1") + end, {"a.jpg is a link"});
  expect_failure(tar_member("a.jpg", "GIF89a") + tar_member("a.cls", "1") + end,
                 {"record 0", "neither JPEG nor PNG"});
}

TEST_F(Tars, a_cut_archive_has_one_bad_record_at_its_end) {
  const std::string whole = sample("a", 1) + sample("b", 2);
  expect_failure(whole.substr(0, whole.size() - 1624),
                 {"train-0.tar: record 1", "truncated", "inside b.jpg"});
  expect_failure(whole.substr(0, whole.size() - 1024 + 100), {"truncated", "inside a header"});
  expect_failure(whole, {"record 2", "truncated", "without the mark"});
  spec_.bad_record_action = BadRecordAction::kSkip;
  spec_.max_skipped = 1;
  EXPECT_EQ(failure(whole), "no error");
  EXPECT_EQ(batch_.labels, (std::vector<std::int32_t>{1, 2, kSkippedLabel}));
}

TEST_F(Tars, a_damaged_header_ends_the_archive_by_name) {
  std::string tar = sample("a", 1) + sample("b", 2) + tar_end();
  const std::size_t second = sample("a", 1).size();
  tar[second + 3] ^= 1;
  expect_failure(tar,
                 {"/d/train-0.tar", "byte offset " + std::to_string(second), "checksum of the tar header"});
  files_.put("/d/train-1.tar.gz", "");
  expect_failure(sample("a", 1) + tar_end(), {"train-1.tar.gz is compressed"});
}

// ---- idx, as a split

std::string big_endian(std::initializer_list<std::uint32_t> values) {
  std::string text;
  for (const std::uint32_t value : values) {
    for (int shift = 24; shift >= 0; shift -= 8) text.push_back(static_cast<char>(value >> shift));
  }
  return text;
}

// TR-39.
TEST(Idx, TR_39_a_label_out_of_range_is_told_before_any_step) {
  base::FakeFiles files;
  files.put("/d/train-images-idx3-ubyte", big_endian({0x803, 5, 1, 1}) + std::string(5, '\0'));
  files.put("/d/train-labels-idx1-ubyte", big_endian({0x801, 5}) + std::string("\0\1\0\2\1", 5));
  contract::DatasetSpec spec;
  spec.format = "idx";
  spec.path = "/d";
  spec.eval_split = "";
  expect_error(open_dataset(files, spec, 2).error(), ErrorCode::kCorruptData,
               {"train-labels-idx1-ubyte", "record 3", "byte offset 11", "label 2", "2 classes"});
  spec.bad_record_action = BadRecordAction::kSkip;
  spec.max_skipped = 1;
  HostBatch batch;
  EXPECT_EQ(epoch(files, spec, 2, batch)->skipped, 1);
  EXPECT_EQ(batch.labels, (std::vector<std::int32_t>{0, 1, 0, kSkippedLabel, 1}));
  EXPECT_EQ(open_dataset(files, spec, 0)->train->info().num_classes, 3);
}

void put_idx(base::FakeFiles& files, const std::string& prefix, std::uint32_t count, std::uint32_t width,
             const std::string& labels) {
  files.put("/d/" + prefix + "-images-idx3-ubyte",
            big_endian({0x803, count, 2, width}) + std::string(count * 2 * width, '\0'));
  files.put("/d/" + prefix + "-labels-idx1-ubyte", big_endian({0x801, count}) + labels);
}

contract::DatasetSpec idx_spec() {
  contract::DatasetSpec spec;
  spec.format = "idx";
  spec.path = "/d";
  return spec;
}

TEST(Idx, the_train_split_decides_the_classes) {
  base::FakeFiles files;
  put_idx(files, "train", 2, 2, std::string("\0\2", 2));
  put_idx(files, "t10k", 1, 2, "\3");
  contract::DatasetSpec spec = idx_spec();
  expect_error(open_dataset(files, spec, 0).error(), ErrorCode::kCorruptData,
               {"t10k-labels-idx1-ubyte: record 0, byte offset 8: label 3"});
  EXPECT_TRUE(open_dataset(files, spec, 4).ok());
  spec.eval_split = "";
  EXPECT_EQ(open_dataset(files, spec, 0)->eval, nullptr);
}

TEST(Idx, nothing_to_train_on_is_an_error) {
  base::FakeFiles files;
  put_idx(files, "train", 0, 2, "");
  expect_error(open_dataset(files, idx_spec(), 2).error(), ErrorCode::kCorruptData, {"0 usable samples"});
}

TEST(Idx, shapes_have_three_sizes_and_must_agree) {
  base::FakeFiles files;
  put_idx(files, "train", 1, 2, std::string(1, '\0'));
  put_idx(files, "t10k", 1, 3, std::string(1, '\0'));
  contract::DatasetSpec spec = idx_spec();
  expect_error(open_dataset(files, spec, 2).error(), ErrorCode::kCorruptData, {"test are 2x3", "train 2x2"});
  spec.image_size = {4, 4};
  EXPECT_EQ(open_dataset(files, spec, 2)->eval->info().sample_shape, (std::vector<std::int64_t>{4, 4, 1}));
  spec.format = "parquet";
  expect_error(open_dataset(files, spec, 2).error(), ErrorCode::kUnsupported, {"parquet"});
}

}  // namespace
}  // namespace evenkeel::trainer
