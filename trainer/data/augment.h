// What happens to one picture between decoding and the model: which part of it is taken, how it is moved and
// mirrored. Pure: a function of the rules, the size of the picture and (seed, epoch, sample), so that neither
// threads nor ranks nor the order of calls can change it. Called by sample_pipeline.h.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "contract/job/spec.h"
#include "trainer/data/image.h"

namespace evenkeel::trainer {

// A rectangle of a picture, in pixels; edges between pixels are whole numbers.
struct Box {
  double y = 0;
  double x = 0;
  double height = 0;
  double width = 0;
  bool operator==(const Box&) const = default;
};

// Names what a random number is for: one sample's draws for two purposes never meet. Other parts of the
// trainer that use Philox with a sample's number take purposes below kFirstDataPurpose.
inline constexpr std::uint32_t kFirstDataPurpose = 0x100;
enum class DrawPurpose : std::uint32_t { kResizedCrop = kFirstDataPurpose, kCrop, kFlip };

// The random numbers of one sample in one epoch for one purpose: Philox4x32-10, key = seed, counter = (sample
// low, sample high, epoch, purpose and number of the draw). Refuses nothing; 2^16 draws of four numbers.
class SampleRandom {
 public:
  SampleRandom(std::uint64_t seed, std::uint64_t epoch, std::int64_t sample, DrawPurpose purpose);
  double uniform();                          // [0, 1), 32 bits
  double between(double low, double high);   // [low, high)
  std::uint32_t below(std::uint32_t bound);  // [0, bound); REQUIRES: bound >= 1

 private:
  std::uint32_t next();

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> numbers_{};
  int used_ = 4;
};

// How a picture is brought to the wanted size where no random crop does it.
enum class Fit {
  kStretch,     // the whole picture, whatever its proportions: idx, cifar10
  kCenterCrop,  // the short side to 256/224 of the wanted size, then the middle of it: photographs
};

struct AugmentRules {
  int height = 0;  // wanted
  int width = 0;
  Fit fit = Fit::kStretch;
  bool resized_crop = false;  // these three only in training
  bool crop = false;
  bool flip = false;
  std::uint64_t seed = 0;
};

// kInvalidInput: a change named twice, or a crop in front of randomResizedCrop, which would undo it.
base::Result<AugmentRules> augment_rules(const std::vector<contract::Augmentation>& list, int height,
                                         int width, Fit fit, std::uint64_t seed);

// What is done with one picture, in this order: `box` of it is resized to (height, width) of the rules, then
// moved by (shift_y, shift_x) with zeros flowing in, then mirrored left to right.
struct AugmentPlan {
  Box box;
  int shift_y = 0;  // pixel (y, x) comes from (y + shift_y, x + shift_x)
  int shift_x = 0;
  bool mirror = false;
  bool operator==(const AugmentPlan&) const = default;
};

inline constexpr int kCropPadding = 4;  // of randomCrop; as in the CIFAR experiments of the ResNet paper

// REQUIRES: height, width >= 1: of the picture, full size.
AugmentPlan plan_sample(const AugmentRules& rules, int height, int width, std::uint64_t epoch,
                        std::int64_t sample);

// The largest of 1, 2, 4, 8 by which a picture may be shrunk while it is decoded, so that `box` still has at
// least the wanted number of pixels on both sides.
int decode_shrink(const Box& box, int wanted_height, int wanted_width);

// Shift and mirror of the plan. REQUIRES: out has the size of `image`, and is not its memory.
void move_and_mirror(const Image& image, const AugmentPlan& plan, std::span<std::uint8_t> out);

}  // namespace evenkeel::trainer
