#include "trainer/data/image_codec.h"

#include <gtest/gtest.h>

#include <cmath>

#include "trainer/data/test_pictures.h"

namespace evenkeel::trainer {
namespace {

using namespace testing;  // NOLINT: test helpers

base::Result<Image> decode(const std::string& bytes, int shrink = 1, const ImageLimits& limits = {}) {
  const auto header = read_image_header(bytes_of(bytes), limits);
  if (!header.ok()) return header.error();
  return decode_image(bytes_of(bytes), *header, shrink);
}

void expect_near(const Image& image, const Image& expected, int tolerance) {
  ASSERT_EQ(image.height, expected.height);
  ASSERT_EQ(image.width, expected.width);
  ASSERT_EQ(image.channels, 3);
  int worst = 0;
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    worst = std::max(worst, std::abs(int{image.pixels[i]} - int{expected.pixels[i]}));
  }
  EXPECT_LE(worst, tolerance);
}

void expect_bad(const std::string& bytes, const std::vector<std::string>& parts,
                const ImageLimits& limits = {}) {
  const auto image = decode(bytes, 1, limits);
  ASSERT_FALSE(image.ok()) << parts.front();
  EXPECT_EQ(image.error().code, base::ErrorCode::kCorruptData);
  for (const std::string& part : parts) {
    EXPECT_NE(image.error().message.find(part), std::string::npos)
        << "\"" << part << "\" in: " << image.error().message;
  }
}

TEST(Jpeg, baseline_progressive_and_grey_give_the_pixels) {
  const Image picture = gradient(40, 56, 80);
  expect_near(*decode(jpeg(picture)), picture, 6);
  expect_near(*decode(jpeg(picture, {95, TJFLAG_PROGRESSIVE, TJSAMP_420})), picture, 24);
  Image gray = solid(9, 7, {130});
  expect_near(*decode(gray_jpeg(gray)), solid(9, 7, {130, 130, 130}), 1);
}

TEST(Jpeg, decodes_at_a_fraction_of_its_size_rounded_up) {
  const std::string bytes = jpeg(gradient(101, 67, 10));
  for (const int shrink : {1, 2, 4, 8}) {
    const auto image = decode(bytes, shrink);
    ASSERT_TRUE(image.ok()) << image.error().message;
    EXPECT_EQ(image->height, (101 + shrink - 1) / shrink);
    EXPECT_EQ(image->width, (67 + shrink - 1) / shrink);
    EXPECT_NEAR(image->row(image->height / 2)[0], 127, 12);
  }
}

// TR-40: pure red in CMYK is C 0, M 255, Y 255, K 0; in a file with an Adobe marker, inverted.
TEST(Jpeg, TR_40_a_cmyk_picture_of_pure_red_is_red) {
  const std::string ycck = four_ink_jpeg(solid(16, 16, {255, 0, 0, 255}));
  expect_near(*decode(ycck), solid(16, 16, {255, 0, 0}), 3);
  // Transform 0 in the Adobe marker: the four components are the inks themselves.
  std::string cmyk = ycck;
  const std::size_t adobe = cmyk.find("Adobe");
  ASSERT_NE(adobe, std::string::npos);
  cmyk[adobe + 11] = 0;
  // What was coded as Y 179, Cb 171, Cr 1, K 255 is now read as inks.
  const auto inks = decode(cmyk);
  ASSERT_TRUE(inks.ok()) << inks.error().message;
  EXPECT_NEAR(inks->pixels[0], 179, 4);
  EXPECT_NEAR(inks->pixels[1], 171, 4);
  EXPECT_NEAR(inks->pixels[2], 1, 4);
  // Without the marker the inks are not inverted.
  const std::size_t marker = adobe - 4;
  const std::string plain = ycck.substr(0, marker) + ycck.substr(marker + 16);
  const auto direct = decode(plain);
  ASSERT_TRUE(direct.ok()) << direct.error().message;
  EXPECT_NEAR(direct->pixels[0], 0, 1);  // K 255 is black
}

// TR-40: 40 x 20 (wide), orientation 6, top-left corner red: 20 x 40 with red at the top right.
TEST(Jpeg, TR_40_orientation_6_turns_the_picture_to_the_right) {
  Image picture = solid(20, 40, {0, 0, 255});
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 8; ++x) {
      std::uint8_t* p = picture.row(y) + 3 * x;
      p[0] = 255;
      p[2] = 0;
    }
  }
  for (const bool big_endian : {true, false}) {
    const auto turned = decode(with_orientation(jpeg(picture), 6, big_endian));
    ASSERT_TRUE(turned.ok()) << turned.error().message;
    ASSERT_EQ(turned->width, 20);
    ASSERT_EQ(turned->height, 40);
    EXPECT_GT(turned->row(0)[3 * 19], 250);  // red, top right
    EXPECT_LT(turned->row(0)[3 * 19 + 2], 5);
    EXPECT_LT(turned->row(0)[0], 5);  // blue, top left
    EXPECT_GT(turned->row(39)[3 * 19 + 2], 250);
  }
}

TEST(Jpeg, every_orientation_puts_the_corner_where_it_belongs) {
  // Rows and columns of the seen picture: {top or bottom, left or right} of the coded top-left corner.
  const std::vector<std::pair<bool, bool>> corner = {{false, false}, {false, true},  {true, true},
                                                     {true, false},  {false, false}, {false, true},
                                                     {true, true},   {true, false}};
  Image picture = solid(16, 32, {0, 0, 0});
  for (int y = 0; y < 8; ++y) std::memset(picture.row(y), 255, 3 * 8);
  for (int y = 0; y < 8; ++y) std::memset(picture.row(y) + 3 * 24, 128, 3 * 8);  // coded top right: grey
  for (int o = 1; o <= 8; ++o) {
    const auto seen = decode(with_orientation(jpeg(picture), o));
    ASSERT_TRUE(seen.ok()) << o;
    ASSERT_EQ(seen->height, o >= 5 ? 32 : 16) << o;
    const auto [bottom, right] = corner[static_cast<std::size_t>(o - 1)];
    const auto at = [&](bool at_bottom, bool at_right) {
      return int{seen->row(at_bottom ? seen->height - 1 : 0)[at_right ? 3 * (seen->width - 1) : 0]};
    };
    EXPECT_NEAR(at(bottom, right), 255, 3) << o;
    EXPECT_NEAR(o >= 5 ? at(!bottom, right) : at(bottom, !right), 128, 3) << o;
    EXPECT_NEAR(at(!bottom, !right), 0, 3) << o;
  }
}

// TR-37.
TEST(Jpeg, TR_37_truncated_anywhere_is_bad_and_never_half_grey) {
  for (const int flags : {0, TJFLAG_PROGRESSIVE}) {
    const std::string whole = jpeg(gradient(64, 64), {90, flags, TJSAMP_420});
    for (const double share : {0.1, 0.5, 0.99}) {
      expect_bad(whole.substr(0, static_cast<std::size_t>(share * static_cast<double>(whole.size()))), {""});
    }
    for (std::size_t size = 0; size < whole.size(); ++size) {
      ASSERT_FALSE(decode(whole.substr(0, size)).ok()) << size << " of " << whole.size();
    }
    ASSERT_TRUE(decode(whole).ok());
  }
}

TEST(Jpeg, what_is_not_supported_is_refused_by_name) {
  std::string arithmetic = jpeg(gradient(16, 16));
  const std::size_t frame = arithmetic.find("\xff\xc0");
  arithmetic[frame + 1] = '\xc9';
  expect_bad(arithmetic, {"arithmetic-coded"});
  arithmetic[frame + 1] = '\xc3';
  expect_bad(arithmetic, {"lossless"});
  arithmetic[frame + 1] = '\xc5';
  expect_bad(arithmetic, {"hierarchical"});
  arithmetic[frame + 1] = '\xc1';
  arithmetic[frame + 4] = 12;
  expect_bad(arithmetic, {"12 bits"});
}

TEST(Jpeg, a_size_beyond_the_limits_or_the_bytes_is_refused_before_memory_is_taken) {
  std::string huge = jpeg(gradient(16, 16));
  const std::size_t frame = huge.find("\xff\xc0");
  huge.replace(frame + 5, 4, "\xff\xff\xff\xff");
  expect_bad(huge, {"65535 x 65535", "limit of 65500"});
  huge.replace(frame + 5, 4, "\x60\x60\x60\x60");
  expect_bad(huge, {"24672 x 24672", "limit of 268435456 in all"});
  huge.replace(frame + 5, 4, "\x30\x30\x30\x30");
  expect_bad(huge, {"truncated", "cannot hold the announced 12336 x 12336"});
  huge.replace(frame + 5, 4, std::string(4, '\0'));
  expect_bad(huge, {"no pixel"});
  expect_bad(jpeg(gradient(16, 20)), {"20 x 16", "limit of 18"}, {18, 1 << 20});
}

TEST(Png, every_kind_gives_rgb) {
  const Image picture = gradient(13, 9, 40);
  expect_near(*decode(png(picture)), picture, 0);
  std::vector<std::string> rows;
  for (int y = 0; y < 13; ++y) rows.emplace_back(reinterpret_cast<const char*>(picture.row(y)), 27);
  expect_near(*decode(png_of(13, 9, {8, PNG_COLOR_TYPE_RGB, true, {}}, rows)), picture, 0);
  // 16 bits: 0xff00 is 254.01 of 255; its first byte alone would say 255.
  expect_near(*decode(png_of(1, 1, {16, PNG_COLOR_TYPE_GRAY, false, {}}, {std::string("\xff\0", 2)})),
              solid(1, 1, {254, 254, 254}), 0);
  // 1 bit grey: 1010...
  const auto bits = decode(png_of(1, 4, {1, PNG_COLOR_TYPE_GRAY, false, {}}, {"\xa0"}));
  ASSERT_TRUE(bits.ok());
  EXPECT_EQ(bits->pixels, (std::vector<std::uint8_t>{255, 255, 255, 0, 0, 0, 255, 255, 255, 0, 0, 0}));
  const PngStyle palette{8, PNG_COLOR_TYPE_PALETTE, false, {{1, 2, 3}, {200, 100, 50}}};
  expect_near(*decode(png_of(1, 1, palette, {"\x01"})), solid(1, 1, {200, 100, 50}), 0);
}

TEST(Png, alpha_is_blended_onto_black) {
  const auto image =
      decode(png_of(1, 2, {8, PNG_COLOR_TYPE_RGBA, false, {}}, {"\xc8\x64\x32\x80\x0a\x0b\x0c\xff"}));
  ASSERT_TRUE(image.ok());
  EXPECT_EQ(image->pixels, (std::vector<std::uint8_t>{100, 50, 25, 10, 11, 12}));
}

TEST(Png, damage_at_any_byte_is_noticed) {
  const std::string whole = png(gradient(12, 12));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    ASSERT_FALSE(decode(whole.substr(0, at)).ok()) << at;
    std::string flipped = whole;
    flipped[at] ^= 0x10;
    ASSERT_FALSE(decode(flipped).ok()) << at;
  }
}

TEST(Png, a_size_beyond_the_bytes_is_refused_before_memory_is_taken) {
  expect_bad(png(gradient(12, 12)), {"12 x 12", "limit of 100 in all"}, {65'500, 100});
  // A header of 16,000 x 16,000 with a right checksum, made by the writer itself.
  std::vector<std::string> rows(16'000, std::string(2'000, '\0'));
  std::string big = png_of(16'000, 16'000, {1, PNG_COLOR_TYPE_GRAY, false, {}}, rows);
  ASSERT_TRUE(read_image_header(bytes_of(big)).ok());
  big.resize(2'000);
  expect_bad(big, {"truncated", "cannot hold the announced 16000 x 16000"});
}

TEST(ImageCodec, what_is_no_picture_is_told_by_its_first_bytes) {
  expect_bad("", {"the image is empty"});
  expect_bad("GIF89a", {"neither JPEG nor PNG", "47 49 46 38"});
  expect_bad("\xff\xd8\xff", {"truncated"});
  expect_bad("\xff", {"neither"});
}

}  // namespace
}  // namespace evenkeel::trainer
