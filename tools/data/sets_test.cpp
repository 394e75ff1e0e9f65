#include "tools/data/sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <turbojpeg.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/hash.h"

namespace evenkeel::data_tool {
namespace {

namespace fs = std::filesystem;

// Each test in a folder of its own, which goes with it.
class Sets : public testing::Test {
 protected:
  Sets() {
    std::string name = testing::TempDir() + "evenkeel-data-XXXXXX";
    root_ = ::mkdtemp(name.data());
  }
  ~Sets() override { fs::remove_all(root_); }

  SetOptions options(const std::string& format, std::int64_t train, std::int64_t test, int files) const {
    SetOptions o;
    o.format = format;
    o.out = root_ + "/" + format;
    o.classes = 3;
    o.splits = {{"train", train, files}, {"test", test, 1}};
    return o;
  }
  static std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    EXPECT_TRUE(file.good()) << path;
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string root_;
};

// A reader of records that trusts nothing but the two CRCs.
std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> out;
  const auto word = [&file](std::size_t at, int bytes) {
    std::uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; --i)
      value = value << 8 | static_cast<unsigned char>(file.at(at + static_cast<std::size_t>(i)));
    return value;
  };
  const auto masked = [](std::string_view bytes) {
    const std::uint32_t crc = base::crc32c_portable(bytes);
    return static_cast<std::uint32_t>((crc >> 15 | crc << 17) + 0xa282ead8);
  };
  for (std::size_t at = 0; at < file.size();) {
    const auto length = static_cast<std::size_t>(word(at, 8));
    EXPECT_EQ(word(at + 8, 4), masked(file.substr(at, 8)));
    out.push_back(file.substr(at + 12, length));
    EXPECT_EQ(word(at + 12 + length, 4), masked(out.back()));
    at += 16 + length;
  }
  return out;
}

std::pair<int, int> jpeg_size(const std::string& bytes) {
  tjhandle handle = tjInitDecompress();
  int width = 0, height = 0, sub = 0, space = 0;
  EXPECT_EQ(tjDecompressHeader3(handle, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                                &width, &height, &sub, &space),
            0);
  tjDestroy(handle);
  return {width, height};
}

// Of an Example: what follows the name of a feature, after the given bytes.
std::size_t find_feature(const std::string& example, const std::string& name) {
  const std::size_t at = example.find(name);
  EXPECT_NE(at, std::string::npos) << name;
  return at + name.size();
}

TEST_F(Sets, idx_files_hold_what_their_headers_say) {
  SetOptions o = options("idx", 11, 4, 1);
  o.width_low = o.width_high = 20;
  o.height_low = o.height_high = 12;
  const auto summary = write_set(o);
  ASSERT_TRUE(summary.ok()) << summary.error().message;
  EXPECT_EQ(summary->samples, 15);
  EXPECT_EQ(summary->files, 4);
  EXPECT_EQ(content(o.out + "/train-images-idx3-ubyte").size(), 16u + 11 * 20 * 12);
  EXPECT_EQ(content(o.out + "/train-images-idx3-ubyte").substr(0, 16),
            std::string("\0\0\x08\x03\0\0\0\x0b\0\0\0\x0c\0\0\0\x14", 16));
  EXPECT_EQ(content(o.out + "/t10k-labels-idx1-ubyte"), std::string("\0\0\x08\x01\0\0\0\x04\0\1\2\0", 12));
}

TEST_F(Sets, cifar10_files_hold_whole_records) {
  SetOptions o = options("cifar10", 7, 5, 2);
  o.width_low = o.width_high = o.height_low = o.height_high = 32;
  ASSERT_TRUE(write_set(o).ok());
  EXPECT_EQ(content(o.out + "/data_batch_1.bin").size(), 3u * 3073);
  const std::string second = content(o.out + "/data_batch_2.bin");
  ASSERT_EQ(second.size(), 4u * 3073);
  EXPECT_EQ(second[0], 3 % 3);
  EXPECT_EQ(second[3073], 4 % 3);
  EXPECT_EQ(content(o.out + "/test_batch.bin").size(), 5u * 3073);
}

TEST_F(Sets, tfrecord_files_hold_every_sample_once_with_its_label_and_size) {
  SetOptions o = options("tfrecord", 10, 3, 4);
  o.width_low = o.height_low = 20;
  o.width_high = o.height_high = 50;
  ASSERT_TRUE(write_set(o).ok());
  std::int64_t index = 0;
  for (int file = 0; file < 4; ++file) {
    for (const std::string& record :
         records_of(content(o.out + "/train-0000" + std::to_string(file) + "-of-00004"))) {
      // value: Feature (5 bytes) of an int64_list (3 bytes) of packed numbers (1 byte)
      const std::size_t label = find_feature(record, "image/class/label");
      EXPECT_EQ(base::to_hex(record.substr(label, 6)), "12051a030a01");
      EXPECT_EQ(record[label + 6], index % 3);
      const auto [width, height] = jpeg_size(record.substr(record.find("\xff\xd8\xff")));
      EXPECT_EQ(static_cast<unsigned char>(record[find_feature(record, "image/width") + 6]), width);
      EXPECT_EQ(static_cast<unsigned char>(record[find_feature(record, "image/height") + 6]), height);
      EXPECT_GE(std::min(width, height), 20);
      EXPECT_LE(std::max(width, height), 50);
      ++index;
    }
  }
  EXPECT_EQ(index, 10);
  EXPECT_EQ(records_of(content(o.out + "/test-00000-of-00001")).size(), 3u);
}

TEST_F(Sets, imagefolder_has_a_folder_for_each_class_even_without_samples) {
  SetOptions o = options("imagefolder", 5, 2, 1);
  ASSERT_TRUE(write_set(o).ok());
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(o.out))
    names.push_back(entry.path().string().substr(o.out.size() + 1));
  EXPECT_THAT(names,
              testing::UnorderedElementsAre("train", "train/class_0000", "train/class_0001",
                                            "train/class_0002", "test", "test/class_0000", "test/class_0001",
                                            "test/class_0002", "train/class_0000/00000000.jpg",
                                            "train/class_0001/00000001.png", "train/class_0002/00000002.jpg",
                                            "train/class_0000/00000003.png", "train/class_0001/00000004.jpg",
                                            "test/class_0000/00000000.jpg", "test/class_0001/00000001.png"));
  EXPECT_EQ(content(o.out + "/train/class_0001/00000001.png").substr(1, 3), "PNG");
  EXPECT_EQ(jpeg_size(content(o.out + "/train/class_0000/00000000.jpg")), std::make_pair(64, 64));
}

TEST_F(Sets, webdataset_archives_hold_an_image_and_a_label_for_each_key) {
  SetOptions o = options("webdataset", 5, 2, 2);
  ASSERT_TRUE(write_set(o).ok());
  std::map<std::string, std::string> entries;
  for (const char* name : {"/train-000000.tar", "/train-000001.tar"}) {
    const std::string tar = content(o.out + name);
    ASSERT_EQ(tar.size() % 512, 0u);
    for (std::size_t at = 0; tar[at] != '\0';) {
      const auto size = std::stoul(tar.substr(at + 124, 11), nullptr, 8);
      entries[tar.substr(at, tar.find('\0', at) - at)] = tar.substr(at + 512, size);
      at += 512 + (size + 511) / 512 * 512;
    }
  }
  ASSERT_EQ(entries.size(), 10u);
  EXPECT_EQ(entries["00000004.cls"], "1");
  EXPECT_EQ(entries["00000003.png"].substr(1, 3), "PNG");
  EXPECT_EQ(jpeg_size(entries["00000004.jpg"]), std::make_pair(64, 64));
}

TEST_F(Sets, threads_do_not_change_a_byte_and_seeds_do) {
  SetOptions o = options("tfrecord", 40, 1, 1);
  ASSERT_TRUE(write_set(o).ok());
  const std::string two = content(o.out + "/train-00000-of-00001");
  o.threads = 1;
  ASSERT_TRUE(write_set(o).ok());
  EXPECT_EQ(content(o.out + "/train-00000-of-00001"), two);
  o.seed = 2;
  ASSERT_TRUE(write_set(o).ok());
  EXPECT_NE(content(o.out + "/train-00000-of-00001"), two);
}

TEST_F(Sets, the_look_alike_set_is_as_uneven_as_its_shares) {
  SetOptions o = cassava(root_ + "/leaves");
  EXPECT_EQ(o.splits[0].samples + o.splits[1].samples + o.splits[2].samples, 5656 + 1889 + 1885);
  o.splits = {{"train", 400, 1}};
  o.width_low = o.height_low = o.width_high = o.height_high = 16;
  ASSERT_TRUE(write_set(o).ok());
  std::map<int, int> count;
  for (const std::string& record : records_of(content(o.out + "/train-00000-of-00001")))
    ++count[record[find_feature(record, "image/class/label") + 6]];
  ASSERT_EQ(count.size(), 5u);
  EXPECT_NEAR(count[3], 400 * 0.47, 40);
  EXPECT_NEAR(count[4], 400 * 0.056, 18);
}

TEST_F(Sets, what_a_format_cannot_hold_is_refused) {
  const auto refused = [](const SetOptions& o) {
    const auto result = write_set(o);
    return result.ok() ? std::string() : result.error().message;
  };
  EXPECT_THAT(refused(options("jpegs", 1, 1, 1)), testing::HasSubstr("format \"jpegs\""));
  EXPECT_THAT(refused(options("cifar10", 1, 1, 1)), testing::HasSubstr("32x32"));
  SetOptions varying = options("idx", 1, 1, 1);
  varying.width_high = 65;
  EXPECT_THAT(refused(varying), testing::HasSubstr("one size"));
  SetOptions many = options("idx", 1, 1, 1);
  many.classes = 257;
  EXPECT_THAT(refused(many), testing::HasSubstr("257"));
  SetOptions nowhere = options("tfrecord", 1, 1, 1);
  nowhere.out = "/proc/no/such/folder";
  EXPECT_THAT(refused(nowhere), testing::HasSubstr("/proc/no/such/folder"));
}

}  // namespace
}  // namespace evenkeel::data_tool
