#include "trainer/data/tfrecord.h"

#include <gtest/gtest.h>

#include "base/files_fake.h"
#include "trainer/data/batch.h"
#include "trainer/data/example.h"
#include "trainer/data/gzip_fixture.h"
#include "trainer/data/open_dataset.h"
#include "trainer/data/test_pictures.h"

namespace evenkeel::trainer {
namespace {

using base::ErrorCode;
using contract::BadRecordAction;
using namespace testing;  // NOLINT: test helpers

std::string from_hex(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return out;
}

TEST(Tfrecord, frames_the_published_example) {
  EXPECT_EQ(frame_tfrecord("abc"), from_hex("0300000000000000b099490e6162636e57f121"));
}

TEST(Example, reads_labels_packed_or_not) {
  const std::string image = bytes_entry("image", "pixels");
  const auto label_of = [&](const std::string& hex) {
    const auto fields = parse_example(from_hex(hex) + field(1, image));
    return fields.ok() ? std::to_string(fields->label) : fields.error().message;
  };
  EXPECT_EQ(label_of("0a100a0e0a056c6162656c12051a030a0103"), "3");  // packed
  EXPECT_EQ(label_of("0a0f0a0d0a056c6162656c12041a020803"), "3");    // not packed
}

TEST(Example, says_what_is_missing_or_of_the_wrong_kind) {
  const std::string image = bytes_entry("image", "pixels"), label = integer_entry("label", 1);
  const auto fault = [](const std::string& entries) {
    return parse_example(field(1, entries)).error().message;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos ? std::string() : text;
  };
  EXPECT_TRUE(parse_example(field(1, image + label)).ok());
  EXPECT_EQ(has(fault(label), "neither image/encoded nor image is there"), "");
  EXPECT_EQ(has(fault(image), "neither image/class/label nor label is there"), "");
  EXPECT_EQ(has(fault(image + bytes_entry("label", "3")), "label holds byte strings instead of one integer"),
            "");
  EXPECT_EQ(has(fault(image + feature_entry("label", field(2, field(1, "0000")))), "label holds floats"), "");
  EXPECT_EQ(
      has(fault(image + feature_entry("label", field(3, field(1, "\x01\x02")))), "label holds 2 values"), "");
  EXPECT_EQ(has(fault(image + feature_entry("label", "")), "label holds no value"), "");
  EXPECT_EQ(has(fault(integer_entry("image/encoded", 1) + label), "image/encoded holds integers"), "");
  // The longer names win.
  const std::string all =
      field(1, image + label + bytes_entry("image/encoded", "x") + integer_entry("image/class/label", 7));
  const auto both = parse_example(all);
  EXPECT_EQ(both->image, "x");
  EXPECT_EQ(both->label, 7);
}

TEST(Example, damage_is_told_and_never_read_beyond) {
  EXPECT_NE(parse_example("\x0a\x7f").error().message.find("announces 127 bytes, 0 are left"),
            std::string::npos);
  EXPECT_FALSE(parse_example(std::string(11, '\xff')).ok());
  EXPECT_FALSE(parse_example("\x0b").ok());  // a group
  const std::string whole = example("pixels", 3);
  for (std::size_t size = 0; size < whole.size(); ++size)
    ASSERT_FALSE(parse_example(whole.substr(0, size)).ok());
  EXPECT_TRUE(parse_example(whole).ok());
}

constexpr std::size_t kRecords = 10;

// TR-35 and TR-36: ten records of 1,024 bytes; record k starts at 1040 k.
std::string ten_records() {
  std::string file;
  for (std::size_t k = 0; k < kRecords; ++k) {
    file += frame_tfrecord(
        padded_example(png(solid(2, 2, {10, 20, 30})), static_cast<std::int64_t>(k % 5), 1024));
  }
  return file;
}

base::Result<SplitPair> open(base::FakeFiles& files, const std::string& content, BadRecordAction action,
                             std::int64_t max_skipped) {
  files.put("/d/train.tfrecord", content);
  contract::DatasetSpec spec = photographs("tfrecord", 2, 2);
  spec.bad_record_action = action;
  spec.max_skipped = max_skipped;
  return open_dataset(files, spec, 5);
}

TEST(Tfrecord, files_that_are_compressed_as_a_whole_give_the_same_records) {
  base::FakeFiles files;
  const std::string plain = ten_records();
  for (int i = 0; i < 4; ++i) {
    const std::string number = "-0000" + std::to_string(i) + "-of-00004";
    files.put("/plain/train" + number, plain);
    files.put("/packed/train" + number + ".gz", gzip(plain));
  }
  HostBatch expected, batch;
  std::uint64_t hashes[2] = {0, 0};
  for (const bool packed : {false, true}) {
    contract::DatasetSpec spec = photographs("tfrecord", 2, 2);
    spec.path = packed ? "/packed" : "/plain";
    const auto pair = open_dataset(files, spec, 5);
    ASSERT_TRUE(pair.ok()) << pair.error().message;
    EXPECT_EQ(pair->train->file_samples(), (std::vector<std::int64_t>{10, 10, 10, 10}));
    EXPECT_EQ(pair->train->sequential_because(), packed ? "files are compressed" : "");
    const auto reader = BatchReader::make(*pair->train, spec, {});
    const auto taken =
        reader->read(EpochOrder(40, Shuffle::kOn, 1, 0), 0, 0, 40, packed ? batch : expected);
    ASSERT_TRUE(taken.ok()) << taken.error().message;
    hashes[packed ? 1 : 0] = taken->id_hash;
  }
  EXPECT_EQ(batch.features, expected.features);
  EXPECT_EQ(batch.labels, expected.labels);
  EXPECT_EQ(hashes[0], hashes[1]);
  const std::string whole = gzip(plain);
  contract::DatasetSpec spec = photographs("tfrecord", 2, 2);
  spec.path = "/cut";
  files.put("/cut/train.tfrecord.gz", whole.substr(0, whole.size() / 2));
  EXPECT_NE(open_dataset(files, spec, 5).error().message.find("truncated gzip stream"), std::string::npos);
  files.put("/cut/train.tfrecord.gz", whole + "x");
  EXPECT_NE(open_dataset(files, spec, 5).error().message.find("bytes behind the gzip stream"), std::string::npos);
}

// Opens and reads one epoch.
base::Result<BatchTaken> epoch(const std::string& content, BadRecordAction action, std::int64_t max_skipped,
                               HostBatch& batch) {
  base::FakeFiles files;
  EVENKEEL_ASSIGN(const SplitPair pair, open(files, content, action, max_skipped));
  contract::DatasetSpec spec = photographs("tfrecord", 2, 2);
  spec.bad_record_action = action;
  spec.max_skipped = max_skipped;
  EVENKEEL_ASSIGN(const BatchReader reader, BatchReader::make(*pair.train, spec, {}));
  const std::int64_t samples = pair.train->info().samples;
  return reader.read(EpochOrder(static_cast<std::uint64_t>(samples), Shuffle::kOff, 0, 0), 0, 0, samples,
                     batch);
}

void expect_corrupt(const base::Result<BatchTaken>& result, const std::vector<std::string>& parts) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kCorruptData);
  for (const std::string& part : parts) {
    EXPECT_NE(result.error().message.find(part), std::string::npos)
        << "\"" << part << "\" in: " << result.error().message;
  }
}

TEST(Tfrecord, TR_35_a_cut_file_has_one_bad_record_at_its_end) {
  const std::string cut = ten_records().substr(0, 5000);
  HostBatch batch;
  expect_corrupt(epoch(cut, BadRecordAction::kFail, 0, batch),
                 {"/d/train.tfrecord", "record 4", "byte offset 4160", "truncated"});
  const auto skipped = epoch(cut, BadRecordAction::kSkip, 1, batch);
  ASSERT_TRUE(skipped.ok()) << skipped.error().message;
  EXPECT_EQ(skipped->consumed, 4);
  EXPECT_EQ(skipped->skipped, 1);
  EXPECT_EQ(batch.labels, (std::vector<std::int32_t>{0, 1, 2, 3, kSkippedLabel}));
  expect_corrupt(epoch(ten_records().substr(0, 4165), BadRecordAction::kFail, 0, batch),
                 {"record 4, byte offset 4160", "truncated", "inside the length"});
}

TEST(Tfrecord, TR_36_a_flipped_bit_is_told_by_the_checksum_that_noticed_it) {
  HostBatch batch;
  std::string data = ten_records();
  data[1152] ^= 1;
  expect_corrupt(epoch(data, BadRecordAction::kFail, 0, batch),
                 {"/d/train.tfrecord", "record 1", "byte offset 1040", "data CRC"});
  const auto skipped = epoch(data, BadRecordAction::kSkip, 1, batch);
  ASSERT_TRUE(skipped.ok());
  EXPECT_EQ(skipped->consumed, 9);

  std::string length = ten_records();
  length.replace(2080, 8, from_hex("ffffffffffffff7f"));
  for (const auto action : {BadRecordAction::kFail, BadRecordAction::kSkip}) {
    expect_corrupt(epoch(length, action, action == BadRecordAction::kSkip, batch),
                   {"/d/train.tfrecord", "record 2", "byte offset 2080", "length CRC"});
  }
}

TEST(Tfrecord, a_label_out_of_range_is_a_bad_record) {
  HostBatch batch;
  std::string file = ten_records();
  for (const std::int64_t label : {5, -1}) {
    expect_corrupt(epoch(file + frame_tfrecord(example("x", label)), BadRecordAction::kFail, 0, batch),
                   {"record 10, byte offset 10400", "label " + std::to_string(label), "5 classes"});
  }
}

TEST(Tfrecord, without_a_number_of_classes_the_user_is_told_where_to_give_it) {
  base::FakeFiles files;
  files.put("/d/train.tfrecord", ten_records());
  const auto pair = open_dataset(files, photographs("tfrecord", 2, 2), 0);
  ASSERT_FALSE(pair.ok());
  EXPECT_EQ(pair.error().code, ErrorCode::kInvalidInput);
  EXPECT_NE(pair.error().message.find("model.options.numClasses"), std::string::npos);
}

TEST(Tfrecord, files_of_a_split_are_found_by_name_and_must_be_complete) {
  const std::string one = frame_tfrecord(example(png(solid(2, 2, {1, 2, 3})), 1));
  base::FakeFiles files;
  const auto samples = [&](const std::string& split) -> std::string {
    contract::DatasetSpec spec = photographs("tfrecord", 2, 2);
    spec.train_split = split;
    const auto pair = open_dataset(files, spec, 5);
    return pair.ok() ? std::to_string(pair->train->info().samples) : pair.error().message;
  };
  files.put("/d/cassava-train.tfrecord-00001-of-00002", one + one);
  files.put("/d/cassava-train.tfrecord-00000-of-00002", one);
  files.put("/d/train-00000-of-00001", one);
  files.put("/d/validation.tfrecord", one);
  files.put("/d/training.tfrecord", "not meant");
  files.put("/d/train.txt", "not meant");
  files.put("/d/features.json", "not meant");
  EXPECT_EQ(samples("train"), "4");
  EXPECT_EQ(samples("validation"), "1");
  EXPECT_NE(samples("test").find("no file of split test in /d"), std::string::npos);
  files.put("/d/train-00000-of-00002", one);
  EXPECT_NE(samples("train").find("/d/train-00001-of-00002 is missing"), std::string::npos)
      << samples("train");
  files.put("/d/validation.tfrecord.zst", one);
  EXPECT_NE(samples("validation").find("validation.tfrecord.zst is compressed"), std::string::npos);
}

TEST(Tfrecord, an_index_needs_few_calls_for_small_records_and_no_data_of_large_ones) {
  base::FakeFiles files;
  std::string small;
  for (int i = 0; i < 10'000; ++i) small += frame_tfrecord(std::string(100, 'x'));
  files.put("/d/train.tfrecord", small);
  const int before = files.calls();
  const auto pair = open_dataset(files, photographs("tfrecord", 2, 2), 5);
  ASSERT_TRUE(pair.ok());
  EXPECT_EQ(pair->train->info().samples, 10'000);
  EXPECT_LT(files.calls() - before, 200);
  EXPECT_LE(pair->train->resident_bytes(), 20'000 * 16u);
}

}  // namespace
}  // namespace evenkeel::trainer
