#include "tools/data/picture.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace evenkeel::data_tool {
namespace {

TEST(Dice, the_same_sample_draws_the_same_and_neighbours_differ) {
  Dice a(1, 2, 3), b(1, 2, 3), c(1, 2, 4), d(1, 3, 3), e(2, 2, 3);
  const std::uint32_t first = a.word();
  EXPECT_EQ(first, b.word());
  EXPECT_NE(first, c.word());
  EXPECT_NE(first, d.word());
  EXPECT_NE(first, e.word());
}

TEST(Dice, whole_numbers_reach_both_ends_and_never_pass_them) {
  Dice dice(1, 1, 1);
  std::array<int, 3> seen{};
  for (int i = 0; i < 3000; ++i) {
    const int value = dice.whole(4, 6);
    ASSERT_GE(value, 4);
    ASSERT_LE(value, 6);
    ++seen[static_cast<std::size_t>(value - 4)];
  }
  for (const int count : seen) EXPECT_NEAR(count, 1000, 120);
}

TEST(Picture, has_the_asked_size_and_some_contrast) {
  for (int label = 0; label < 10; ++label) {
    for (const int channels : {1, 3}) {
      Dice dice(1, 0, static_cast<std::uint64_t>(label));
      const Picture picture = draw({label, 10, 41, 33, channels}, dice);
      ASSERT_EQ(picture.pixels.size(), static_cast<std::size_t>(41 * 33 * channels));
      double sum = 0, squares = 0;
      for (const std::uint8_t p : picture.pixels) {
        sum += p;
        squares += static_cast<double>(p) * p;
      }
      const double n = static_cast<double>(picture.pixels.size());
      EXPECT_GT(std::sqrt(squares / n - sum / n * (sum / n)), 12.0) << label << " " << channels;
    }
  }
}

TEST(Picture, is_a_function_of_seed_split_and_sample) {
  Dice a(5, 0, 9), b(5, 0, 9);
  EXPECT_EQ(draw({2, 5, 64, 48, 3}, a).pixels, draw({2, 5, 64, 48, 3}, b).pixels);
}

}  // namespace
}  // namespace evenkeel::data_tool
