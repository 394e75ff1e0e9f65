#include "trainer/data/resize.h"

#include <gtest/gtest.h>

#include <cmath>

#include "trainer/data/test_pictures.h"

namespace evenkeel::trainer {
namespace {

using namespace testing;  // NOLINT: test helpers

Box whole(const Image& image) {
  return {0, 0, static_cast<double>(image.height), static_cast<double>(image.width)};
}

Image row_of(std::vector<std::uint8_t> values) {
  Image image;
  image.reset(1, static_cast<int>(values.size()), 1);
  image.pixels = std::move(values);
  return image;
}

// The definition, in double: triangle of the scale's width around each centre, normalised, both axes.
double naive(const Image& s, const Box& box, int height, int width, int y, int x, int c) {
  const double scale_y = box.height / height, scale_x = box.width / width;
  const double center_y = box.y + (y + 0.5) * scale_y, center_x = box.x + (x + 0.5) * scale_x;
  const double reach_y = std::max(1.0, scale_y), reach_x = std::max(1.0, scale_x);
  double sum = 0, weights = 0;
  for (int i = 0; i < s.height; ++i) {
    for (int j = 0; j < s.width; ++j) {
      const double w = std::max(0.0, 1 - std::abs(i + 0.5 - center_y) / reach_y) *
                       std::max(0.0, 1 - std::abs(j + 0.5 - center_x) / reach_x);
      sum += w * s.row(i)[j * s.channels + c];
      weights += w;
    }
  }
  return sum / weights;
}

TEST(Resize, the_same_size_is_the_same_picture) {
  const Image picture = gradient(17, 23, 99);
  Image out;
  resize_box(picture, whole(picture), 17, 23, out);
  EXPECT_EQ(out.pixels, picture.pixels);
}

TEST(Resize, doubles_with_half_pixel_centres) {
  Image out;
  resize_box(row_of({0, 100}), {0, 0, 1, 2}, 1, 4, out);
  EXPECT_EQ(out.pixels, (std::vector<std::uint8_t>{0, 25, 75, 100}));
}

TEST(Resize, every_source_pixel_counts_when_shrinking) {
  // A lone bright pixel anywhere must show; without antialiasing half of them would vanish.
  for (std::size_t at = 0; at < 16; ++at) {
    std::vector<std::uint8_t> values(16, 0);
    values[at] = 255;
    Image out;
    resize_box(row_of(values), {0, 0, 1, 16}, 1, 2, out);
    EXPECT_GT(out.pixels[0] + out.pixels[1], 8) << at;
  }
}

TEST(Resize, agrees_with_the_definition_for_odd_sizes_boxes_and_channels) {
  Image picture;
  picture.reset(19, 31, 3);
  std::uint32_t state = 7;
  for (std::uint8_t& p : picture.pixels)
    p = static_cast<std::uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  const std::vector<Box> boxes = {whole(picture), {2, 3, 11, 20}, {0.5, 7.25, 18.5, 3.75}, {18, 30, 1, 1}};
  for (const Box& box : boxes) {
    for (const auto& [h, w] : std::vector<std::pair<int, int>>{{1, 1}, {7, 5}, {40, 33}, {19, 64}}) {
      Image out;
      resize_box(picture, box, h, w, out);
      for (int y = 0; y < h; ++y) {
        for (int x = 0; x < w; ++x) {
          for (int c = 0; c < 3; ++c) {
            ASSERT_NEAR(out.row(y)[3 * x + c], naive(picture, box, h, w, y, x, c), 1.02)
                << h << "x" << w << " at " << y << "," << x;
          }
        }
      }
    }
  }
}

TEST(Resize, an_even_area_keeps_its_value) {
  const Image even = solid(101, 77, {0, 200, 255});
  Image out;
  resize_box(even, {3.3, 1.7, 90.1, 70.9}, 33, 150, out);
  EXPECT_EQ(out.pixels, solid(33, 150, {0, 200, 255}).pixels);
}

}  // namespace
}  // namespace evenkeel::trainer
