#include "trainer/data/augment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "base/philox.h"
#include "trainer/data/test_pictures.h"

namespace evenkeel::trainer {
namespace {

using contract::Augmentation;

AugmentRules rules(const std::vector<Augmentation>& list, int size = 224, Fit fit = Fit::kCenterCrop) {
  return *augment_rules(list, size, size, fit, 1);
}

TEST(SampleRandom, is_philox_keyed_by_the_seed_and_counted_by_sample_epoch_and_purpose) {
  SampleRandom random((std::uint64_t{5} << 32) | 9, 3, (std::int64_t{2} << 32) | 7, DrawPurpose::kFlip);
  const auto block = base::philox({7, 2, 3, 0x102U << 16}, {9, 5});
  for (const std::uint32_t number : block) EXPECT_EQ(random.uniform(), number * 0x1p-32);
  const auto next = base::philox({7, 2, 3, (0x102U << 16) + 1}, {9, 5});
  EXPECT_EQ(random.uniform(), next[0] * 0x1p-32);
}

TEST(AugmentRules, a_list_that_cannot_be_meant_is_refused) {
  const auto error = [](const std::vector<Augmentation>& list) {
    const auto result = augment_rules(list, 32, 32, Fit::kStretch, 1);
    return result.ok() ? std::string() : result.error().message;
  };
  EXPECT_NE(
      error({Augmentation::kHorizontalFlip, Augmentation::kHorizontalFlip}).find("horizontalFlip twice"),
      std::string::npos);
  EXPECT_NE(error({Augmentation::kRandomCrop, Augmentation::kRandomResizedCrop})
                .find("put randomResizedCrop first"),
            std::string::npos);
  EXPECT_EQ(
      error({Augmentation::kRandomResizedCrop, Augmentation::kRandomCrop, Augmentation::kHorizontalFlip}),
      "");
}

TEST(AugmentPlan, a_resized_crop_stays_inside_and_has_the_area_and_proportions_of_the_rule) {
  const AugmentRules crop = rules({Augmentation::kRandomResizedCrop});
  double mean_area = 0;
  constexpr int kSamples = 4000;
  for (int sample = 0; sample < kSamples; ++sample) {
    const Box box = plan_sample(crop, 375, 500, 0, sample).box;
    ASSERT_GE(box.y, 0);
    ASSERT_GE(box.x, 0);
    ASSERT_LE(box.y + box.height, 375);
    ASSERT_LE(box.x + box.width, 500);
    const double area = box.height * box.width / (375.0 * 500.0);
    ASSERT_GT(area, 0.078);
    const double ratio = box.width / box.height;
    ASSERT_GT(ratio, 0.74);
    ASSERT_LT(ratio, 1.35);
    mean_area += area / kSamples;
  }
  EXPECT_NEAR(mean_area, 0.4327, 0.015);  // by simulation of the rule; sigma is 0.004
}

TEST(AugmentPlan, a_picture_that_no_attempt_fits_gives_its_middle) {
  const Box tall = plan_sample(rules({Augmentation::kRandomResizedCrop}), 10'000, 10, 0, 1).box;
  EXPECT_EQ(tall, (Box{4993, 0, 13, 10}));  // 10 / (3/4) = 13.3
  const Box wide = plan_sample(rules({Augmentation::kRandomResizedCrop}), 10, 10'000, 0, 1).box;
  EXPECT_EQ(wide, (Box{0, 4993, 10, 13}));
}

TEST(AugmentPlan, evaluation_takes_the_middle_after_the_short_side_is_256_of_224) {
  // 375 x 500 -> 256 x 341; the middle 224 begins at 16 and 58.
  const AugmentPlan plan = plan_sample(rules({}), 375, 500, 0, 1);
  EXPECT_NEAR(plan.box.y, 16 * 375.0 / 256, 1e-9);
  EXPECT_NEAR(plan.box.x, 58 * 500.0 / 341, 1e-9);
  EXPECT_NEAR(plan.box.height, 224 * 375.0 / 256, 1e-9);
  EXPECT_NEAR(plan.box.width, 224 * 500.0 / 341, 1e-9);
  EXPECT_FALSE(plan.mirror);
  EXPECT_EQ(plan_sample(rules({}), 224, 224, 0, 1).box, (Box{0, 0, 224, 224}));
  EXPECT_EQ(plan_sample(rules({}, 32, Fit::kStretch), 28, 20, 0, 1).box, (Box{0, 0, 28, 20}));
}

TEST(AugmentPlan, shifts_and_mirrors_are_fair) {
  const AugmentRules both =
      rules({Augmentation::kRandomCrop, Augmentation::kHorizontalFlip}, 32, Fit::kStretch);
  std::map<std::pair<int, int>, int> shifts;
  int mirrored = 0;
  for (int sample = 0; sample < 8100; ++sample) {
    const AugmentPlan plan = plan_sample(both, 32, 32, 0, sample);
    ++shifts[{plan.shift_y, plan.shift_x}];
    mirrored += plan.mirror;
  }
  EXPECT_EQ(shifts.size(), 81u);
  for (const auto& [shift, count] : shifts) {
    EXPECT_LE(std::abs(shift.first), 4);
    EXPECT_LE(std::abs(shift.second), 4);
    EXPECT_NEAR(count, 100, 50);
  }
  EXPECT_NEAR(mirrored, 4050, 5 * 45);
}

TEST(AugmentPlan, differs_between_epochs_samples_and_seeds) {
  AugmentRules all = rules({Augmentation::kRandomResizedCrop, Augmentation::kHorizontalFlip});
  const AugmentPlan first = plan_sample(all, 375, 500, 0, 1);
  EXPECT_EQ(first, plan_sample(all, 375, 500, 0, 1));
  EXPECT_NE(first, plan_sample(all, 375, 500, 1, 1));
  EXPECT_NE(first, plan_sample(all, 375, 500, 0, 2));
  all.seed = 2;
  EXPECT_NE(first, plan_sample(all, 375, 500, 0, 1));
}

TEST(Shrink, is_the_largest_that_leaves_enough_pixels) {
  EXPECT_EQ(decode_shrink({0, 0, 223, 2000}, 224, 224), 1);
  EXPECT_EQ(decode_shrink({0, 0, 447, 448}, 224, 224), 1);
  EXPECT_EQ(decode_shrink({0, 0, 448, 448}, 224, 224), 2);
  EXPECT_EQ(decode_shrink({0, 0, 1000, 4000}, 224, 224), 4);
  EXPECT_EQ(decode_shrink({0, 0, 10'000, 10'000}, 224, 224), 8);
}

TEST(MoveAndMirror, zeros_flow_in_and_the_mirror_comes_last) {
  Image image;
  image.reset(1, 4, 1);
  image.pixels = {1, 2, 3, 4};
  std::vector<std::uint8_t> out(4);
  move_and_mirror(image, {{}, 0, 1, false}, out);
  EXPECT_EQ(out, (std::vector<std::uint8_t>{2, 3, 4, 0}));
  move_and_mirror(image, {{}, 0, 1, true}, out);
  EXPECT_EQ(out, (std::vector<std::uint8_t>{0, 4, 3, 2}));
  move_and_mirror(image, {{}, 0, 0, true}, out);
  EXPECT_EQ(out, (std::vector<std::uint8_t>{4, 3, 2, 1}));
  move_and_mirror(image, {{}, -1, 0, false}, out);
  EXPECT_EQ(out, (std::vector<std::uint8_t>{0, 0, 0, 0}));
}

}  // namespace
}  // namespace evenkeel::trainer
