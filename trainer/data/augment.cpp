#include "trainer/data/augment.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <string>

#include "base/philox.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;

// Of randomResizedCrop: share of the area, proportions, attempts before the middle is taken.
constexpr double kMinArea = 0.08, kMaxArea = 1.0;
constexpr double kMinRatio = 3.0 / 4.0, kMaxRatio = 4.0 / 3.0;
constexpr int kAttempts = 10;

Box middle(int height, int width, int box_height, int box_width) {
  return {static_cast<double>((height - box_height) / 2), static_cast<double>((width - box_width) / 2),
          static_cast<double>(box_height), static_cast<double>(box_width)};
}

int rounded(double value) {
  return std::max(1, static_cast<int>(std::lround(value)));
}

// The largest box in the middle whose proportions are allowed.
Box fallback_crop(int height, int width) {
  const double ratio = static_cast<double>(width) / height;
  if (ratio < kMinRatio) return middle(height, width, std::min(height, rounded(width / kMinRatio)), width);
  if (ratio > kMaxRatio) return middle(height, width, height, std::min(width, rounded(height * kMaxRatio)));
  return middle(height, width, height, width);
}

Box random_resized_crop(SampleRandom random, int height, int width) {
  const double area = static_cast<double>(height) * width;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double wanted = area * random.between(kMinArea, kMaxArea);
    const double ratio = std::exp(random.between(std::log(kMinRatio), std::log(kMaxRatio)));
    const int box_width = rounded(std::sqrt(wanted * ratio));
    const int box_height = rounded(std::sqrt(wanted / ratio));
    // Drawn also where the box does not fit: every attempt takes one block of four numbers.
    const double y = random.uniform(), x = random.uniform();
    if (box_width > width || box_height > height) continue;
    return {std::floor(y * (height - box_height + 1)), std::floor(x * (width - box_width + 1)),
            static_cast<double>(box_height), static_cast<double>(box_width)};
  }
  return fallback_crop(height, width);
}

// The part of the picture that is seen when its short side is brought to 256/224 of the wanted size and the
// middle is cut out.
Box center_crop(const AugmentRules& rules, int height, int width) {
  const double factor = std::max(std::round(rules.height * 256.0 / 224.0) / height,
                                 std::round(rules.width * 256.0 / 224.0) / width);
  const int resized_height = std::max(rules.height, rounded(height * factor));
  const int resized_width = std::max(rules.width, rounded(width * factor));
  const Box cut = middle(resized_height, resized_width, rules.height, rules.width);
  const double scale_y = static_cast<double>(height) / resized_height;
  const double scale_x = static_cast<double>(width) / resized_width;
  return {cut.y * scale_y, cut.x * scale_x, cut.height * scale_y, cut.width * scale_x};
}

Box fitted(const AugmentRules& rules, int height, int width) {
  const Box whole{0, 0, static_cast<double>(height), static_cast<double>(width)};
  const bool same = height == rules.height && width == rules.width;
  return same || rules.fit == Fit::kStretch ? whole : center_crop(rules, height, width);
}

const char* name_of(contract::Augmentation change) {
  switch (change) {
    case contract::Augmentation::kRandomResizedCrop:
      return "randomResizedCrop";
    case contract::Augmentation::kRandomCrop:
      return "randomCrop";
    case contract::Augmentation::kHorizontalFlip:
      return "horizontalFlip";
  }
  return "";
}

}  // namespace

SampleRandom::SampleRandom(std::uint64_t seed, std::uint64_t epoch, std::int64_t sample, DrawPurpose purpose)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
      counter_{static_cast<std::uint32_t>(sample),
               static_cast<std::uint32_t>(static_cast<std::uint64_t>(sample) >> 32),
               static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(purpose) << 16} {}

std::uint32_t SampleRandom::next() {
  if (used_ == 4) {
    numbers_ = base::philox(counter_, key_);
    ++counter_[3];
    used_ = 0;
  }
  return numbers_[static_cast<std::size_t>(used_++)];
}

double SampleRandom::uniform() {
  return next() * 0x1p-32;
}

double SampleRandom::between(double low, double high) {
  return low + (high - low) * uniform();
}

std::uint32_t SampleRandom::below(std::uint32_t bound) {
  assert(bound >= 1);
  return static_cast<std::uint32_t>(std::uint64_t{next()} * bound >> 32);
}

base::Result<AugmentRules> augment_rules(const std::vector<contract::Augmentation>& list, int height,
                                         int width, Fit fit, std::uint64_t seed) {
  AugmentRules rules{height, width, fit, false, false, false, seed};
  for (const contract::Augmentation change : list) {
    bool& on = change == contract::Augmentation::kRandomResizedCrop ? rules.resized_crop
               : change == contract::Augmentation::kRandomCrop      ? rules.crop
                                                                    : rules.flip;
    if (on) {
      return Error{ErrorCode::kInvalidInput,
                   std::string("dataset.augment names ") + name_of(change) + " twice: take one of them away"};
    }
    if (change == contract::Augmentation::kRandomResizedCrop && rules.crop) {
      return Error{
          ErrorCode::kInvalidInput,
          "dataset.augment has randomCrop in front of randomResizedCrop: put randomResizedCrop first"};
    }
    on = true;
  }
  return rules;
}

AugmentPlan plan_sample(const AugmentRules& rules, int height, int width, std::uint64_t epoch,
                        std::int64_t sample) {
  const auto random = [&](DrawPurpose purpose) { return SampleRandom(rules.seed, epoch, sample, purpose); };
  AugmentPlan plan;
  plan.box = rules.resized_crop ? random_resized_crop(random(DrawPurpose::kResizedCrop), height, width)
                                : fitted(rules, height, width);
  if (rules.crop) {
    SampleRandom numbers = random(DrawPurpose::kCrop);
    plan.shift_y = static_cast<int>(numbers.below(2 * kCropPadding + 1)) - kCropPadding;
    plan.shift_x = static_cast<int>(numbers.below(2 * kCropPadding + 1)) - kCropPadding;
  }
  plan.mirror = rules.flip && random(DrawPurpose::kFlip).below(2) == 1;
  return plan;
}

int decode_shrink(const Box& box, int wanted_height, int wanted_width) {
  for (const int shrink : {8, 4, 2}) {
    if (box.height >= static_cast<double>(wanted_height) * shrink &&
        box.width >= static_cast<double>(wanted_width) * shrink)
      return shrink;
  }
  return 1;
}

void move_and_mirror(const Image& image, const AugmentPlan& plan, std::span<std::uint8_t> out) {
  assert(out.size() == image.pixels.size());
  if (plan.shift_y == 0 && plan.shift_x == 0 && !plan.mirror) {
    if (!out.empty()) std::memcpy(out.data(), image.pixels.data(), out.size());
    return;
  }
  const int channels = image.channels;
  std::uint8_t* at = out.data();
  for (int y = 0; y < image.height; ++y) {
    const int from_y = y + plan.shift_y;
    for (int x = 0; x < image.width; ++x, at += channels) {
      const int from_x = (plan.mirror ? image.width - 1 - x : x) + plan.shift_x;
      const bool inside = from_y >= 0 && from_y < image.height && from_x >= 0 && from_x < image.width;
      const std::uint8_t* from = inside ? image.row(from_y) + from_x * channels : nullptr;
      for (int c = 0; c < channels; ++c) at[c] = inside ? from[c] : 0;
    }
  }
}

}  // namespace evenkeel::trainer
