#include "tools/data/encode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <turbojpeg.h>

#include <cmath>

#include "base/hash.h"

namespace evenkeel::data_tool {
namespace {

std::string hex(std::string_view bytes) {
  return base::to_hex(bytes);
}

Picture gradient(int width, int height, int channels) {
  Picture picture{width, height, channels, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c)
        picture.pixels.push_back(static_cast<std::uint8_t>(3 * x + 2 * y + 40 * c));
    }
  }
  return picture;
}

TEST(Example, a_label_is_packed_as_the_format_says) {
  EXPECT_EQ(hex(encode_example({{"label", {}, {3}}})), "0a100a0e0a056c6162656c12051a030a0103");
}

TEST(Example, numbers_are_varints_and_bytes_lists_keep_their_order) {
  EXPECT_EQ(hex(encode_example({{"n", {}, {300, 1}}})), "0a0e0a0c0a016e12071a050a03ac0201");
  EXPECT_EQ(hex(encode_example({{"b", {"xy", ""}, {}}})), "0a0f0a0d0a016212080a060a0278790a00");
}

TEST(TfRecord, a_record_is_length_and_data_each_with_its_masked_crc) {
  EXPECT_EQ(hex(encode_tfrecord("abc")), "0300000000000000b099490e6162636e57f121");
}

TEST(Tar, an_entry_fills_blocks_of_512_and_its_checksum_holds) {
  const std::string entry = encode_tar_entry("a/b.jpg", std::string(513, 'x'));
  ASSERT_EQ(entry.size(), 512u + 1024u);
  EXPECT_EQ(entry.substr(0, 8), std::string("a/b.jpg\0", 8));
  EXPECT_EQ(entry.substr(124, 12), std::string("00000001001\0", 12));
  EXPECT_EQ(entry.substr(257, 8), std::string("ustar\00000", 8));
  unsigned sum = 0;
  for (std::size_t i = 0; i < 512; ++i)
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(entry[i]);
  EXPECT_EQ(std::stoul(entry.substr(148, 6), nullptr, 8), sum);
  EXPECT_EQ(entry.substr(512, 513), std::string(513, 'x'));
  EXPECT_EQ(tar_end().size(), 1024u);
  EXPECT_EQ(encode_tar_entry("e", "").size(), 512u);
}

TEST(Idx, the_header_names_type_and_sizes_big_endian) {
  EXPECT_EQ(hex(idx_header({60000, 28, 28})), "000008030000ea600000001c0000001c");
  EXPECT_EQ(hex(idx_header({10})), "000008010000000a");
}

TEST(Cifar, a_record_is_a_label_and_three_planes) {
  const Picture picture = gradient(32, 32, 3);
  const std::string record = encode_cifar10(picture, 7);
  ASSERT_EQ(record.size(), 3073u);
  EXPECT_EQ(record[0], 7);
  EXPECT_EQ(static_cast<std::uint8_t>(record[1 + 5]), picture.pixels[5 * 3]);
  EXPECT_EQ(static_cast<std::uint8_t>(record[1 + 1024 + 5]), picture.pixels[5 * 3 + 1]);
  EXPECT_EQ(static_cast<std::uint8_t>(record[1 + 2048 + 1023]), picture.pixels[1023 * 3 + 2]);
}

TEST(Jpeg, decodes_to_nearly_the_same_picture_without_a_warning) {
  for (const int channels : {1, 3}) {
    const Picture picture = gradient(37, 21, channels);
    const auto bytes = encode_jpeg(picture, 90);
    ASSERT_TRUE(bytes.ok());
    tjhandle handle = tjInitDecompress();
    std::vector<std::uint8_t> out(picture.pixels.size());
    ASSERT_EQ(tjDecompress2(handle, reinterpret_cast<const unsigned char*>(bytes->data()), bytes->size(),
                            out.data(), 37, 0, 21, channels == 1 ? TJPF_GRAY : TJPF_RGB, 0),
              0);
    tjDestroy(handle);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += std::abs(out[i] - picture.pixels[i]);
    EXPECT_LT(sum / static_cast<double>(out.size()), 3.0)
        << channels;  // half resolution of colours costs that much
  }
}

TEST(Png, decodes_to_the_same_bytes) {
  for (const int channels : {1, 3}) {
    const Picture picture = gradient(19, 23, channels);
    const auto bytes = encode_png(picture);
    ASSERT_TRUE(bytes.ok());
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    ASSERT_NE(png_image_begin_read_from_memory(&image, bytes->data(), bytes->size()), 0);
    EXPECT_EQ(image.width, 19u);
    EXPECT_EQ(image.height, 23u);
    image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    std::vector<std::uint8_t> out(PNG_IMAGE_SIZE(image));
    ASSERT_NE(png_image_finish_read(&image, nullptr, out.data(), 0, nullptr), 0);
    EXPECT_EQ(out, picture.pixels);
  }
}

}  // namespace
}  // namespace evenkeel::data_tool
