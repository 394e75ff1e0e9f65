#include "tools/data/picture.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "base/hash.h"

namespace evenkeel::data_tool {
namespace {

using Color = std::array<double, 3>;  // 0..255

constexpr int kTextures = 5;
constexpr double kHueSpread = 0.14;  // of the circle, to both sides: neighbouring classes overlap

double fraction(double x) {
  return x - std::floor(x);
}

// Hue, saturation and value, all 0..1.
Color from_hsv(double hue, double saturation, double value) {
  Color color;
  for (int c = 0; c < 3; ++c) {
    const double turned = fraction(hue + (3 - c) % 3 / 3.0) * 6.0;  // the hue as this channel sees it
    const double share = std::clamp(std::abs(turned - 3.0) - 1.0, 0.0, 1.0);
    color[static_cast<std::size_t>(c)] = 255.0 * value * (1.0 - saturation + saturation * share);
  }
  return color;
}

double luminance(const Color& color) {
  return 0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2];
}

// What makes the class: which texture, how coarse, which colours. Classes beyond five repeat the textures,
// coarse after fine.
struct Look {
  int texture = 0;
  double coarse = 1;
  double hue = 0;
};

Look look_of(int label, int classes) {
  return {label % kTextures, label / kTextures % 2 == 1 ? 1.8 : 1.0,
          static_cast<double>(label) / static_cast<double>(classes)};
}

// A leaf: an ellipse that is filled with the texture.
struct Patch {
  double x, y, inverse_rx, inverse_ry;
  double inverse_period, slant, phase_u, phase_v;
  Color ink, paper;

  bool covers(double px, double py) const {
    const double dx = (px - x) * inverse_rx;
    const double dy = (py - y) * inverse_ry;
    return dx * dx + dy * dy < 1.0;
  }
};

// Whether the point is of the ink or of the paper. Stripes lie and stand: a mirrored picture keeps its class.
bool inked(const Patch& patch, int texture, double px, double py) {
  const double dx = px - patch.x;
  const double dy = py - patch.y;
  const double u = (dx + patch.slant * dy) * patch.inverse_period + patch.phase_u;
  const double v = (dy - patch.slant * dx) * patch.inverse_period + patch.phase_v;
  switch (texture) {
    case 0:
      return fraction(v) < 0.5;
    case 1:
      return fraction(u) < 0.5;
    case 2:
      return (fraction(u) < 0.5) != (fraction(v) < 0.5);
    case 3: {
      const double a = fraction(u) - 0.5;
      const double b = fraction(v) - 0.5;
      return a * a + b * b < 0.09;
    }
    default:
      return fraction(std::sqrt(dx * dx + dy * dy) * patch.inverse_period + patch.phase_u) < 0.5;
  }
}

// Two colours that differ enough in brightness to be told apart without their hue.
void choose_colors(Patch& patch, double hue, Dice& dice) {
  for (int attempt = 0; attempt < 64; ++attempt) {
    patch.ink = from_hsv(hue + dice.between(-kHueSpread, kHueSpread), dice.between(0.4, 0.9),
                         dice.between(0.3, 0.95));
    patch.paper = from_hsv(dice.unit(), dice.between(0.1, 0.6), dice.between(0.2, 0.95));
    if (std::abs(luminance(patch.ink) - luminance(patch.paper)) > 55.0) return;
  }
  patch.paper = from_hsv(0, 0, luminance(patch.ink) > 128.0 ? 0.1 : 0.9);
}

Patch make_patch(const PictureOrder& order, const Look& look, Dice& dice) {
  const double side = std::min(order.width, order.height);
  Patch patch;
  patch.x = dice.between(0.15, 0.85) * order.width;
  patch.y = dice.between(0.15, 0.85) * order.height;
  patch.inverse_rx = 1.0 / (dice.between(0.3, 0.6) * order.width);
  patch.inverse_ry = 1.0 / (dice.between(0.3, 0.6) * order.height);
  // A period below four pixels would be drawn as something else.
  patch.inverse_period = 1.0 / std::max(4.0, side * dice.between(0.09, 0.16) * look.coarse);
  patch.slant = dice.between(-0.25, 0.25);
  patch.phase_u = dice.unit();
  patch.phase_v = dice.unit();
  choose_colors(patch, look.hue, dice);
  return patch;
}

// What lies between the patches: one colour, brighter to one side.
struct Ground {
  Color color;
  double slope_x, slope_y;

  double light(double px, double py) const { return 1.0 + slope_x * px + slope_y * py; }
};

Ground make_ground(const PictureOrder& order, Dice& dice) {
  const Color color = from_hsv(dice.unit(), dice.between(0.1, 0.5), dice.between(0.25, 0.85));
  return {color, dice.between(-0.4, 0.4) / order.width, dice.between(-0.4, 0.4) / order.height};
}

std::uint8_t to_byte(double value) {
  return static_cast<std::uint8_t>(std::clamp(value + 0.5, 0.0, 255.0));
}

}  // namespace

Dice::Dice(std::uint64_t seed, std::uint64_t split, std::uint64_t sample)
    : state_(base::mix64(base::mix64(base::mix64(seed) + split) + sample)) {}

std::uint32_t Dice::word() {
  state_ += 0x9e3779b97f4a7c15ULL;
  return static_cast<std::uint32_t>(base::mix64(state_) >> 32);
}

double Dice::unit() {
  return word() * 0x1p-32;
}

double Dice::between(double low, double high) {
  return low + (high - low) * unit();
}

int Dice::whole(int low, int high) {
  return low + static_cast<int>(
                   static_cast<std::uint64_t>(word()) * static_cast<std::uint64_t>(high - low + 1) >> 32);
}

Picture draw(const PictureOrder& order, Dice& dice) {
  assert(order.label >= 0 && order.label < order.classes && order.width >= 8 && order.height >= 8);
  const Look look = look_of(order.label, order.classes);
  const Ground ground = make_ground(order, dice);
  std::vector<Patch> patches;
  for (int i = dice.whole(3, 5); i > 0; --i) patches.push_back(make_patch(order, look, dice));
  const double exposure = dice.between(0.75, 1.2);
  const int grain = dice.whole(2, 8);

  Picture picture{order.width, order.height, order.channels, {}};
  picture.pixels.resize(static_cast<std::size_t>(order.width) * static_cast<std::size_t>(order.height) *
                        static_cast<std::size_t>(order.channels));
  std::uint8_t* out = picture.pixels.data();
  // One generator for the grain, four pixels a word: it is most of the work otherwise.
  std::uint64_t noise = dice.word() | 1;
  for (int y = 0; y < order.height; ++y) {
    for (int x = 0; x < order.width; ++x) {
      const Color* color = &ground.color;
      for (const Patch& patch : patches) {
        if (!patch.covers(x, y)) continue;
        color = inked(patch, look.texture, x, y) ? &patch.ink : &patch.paper;
        break;
      }
      noise = noise * 6364136223846793005ULL + 1442695040888963407ULL;
      const double light = exposure * ground.light(x, y);
      const double speck = static_cast<double>(static_cast<int>(noise >> 56) - 128) * grain / 128.0;
      if (order.channels == 1) {
        *out++ = to_byte(luminance(*color) * light + speck);
      } else {
        for (const double channel : *color) *out++ = to_byte(channel * light + speck);
      }
    }
  }
  return picture;
}

}  // namespace evenkeel::data_tool
