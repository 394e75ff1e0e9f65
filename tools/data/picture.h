// Pictures with classes that a small convolutional network learns and a linear model does not: a class is a
// texture (stripes, checks, dots, rings) in its own range of colours, on leaf-like patches of random place,
// size, slant, phase and brightness. Pure functions of (seed, split, number of the sample); only + - * / and
// square roots, which IEEE defines to the bit, so every machine draws the same bytes. Called by sets.h.
#pragma once

#include <cstdint>
#include <vector>

namespace evenkeel::data_tool {

struct Picture {
  int width = 0;
  int height = 0;
  int channels = 3;                  // 1 or 3
  std::vector<std::uint8_t> pixels;  // (height, width, channels)
};

// Random numbers of one sample, in the order of the calls.
class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t split, std::uint64_t sample);
  std::uint32_t word();
  double unit();                            // [0, 1)
  double between(double low, double high);  // [low, high)
  int whole(int low, int high);             // [low, high], both included

 private:
  std::uint64_t state_;
};

struct PictureOrder {
  int label = 0;
  int classes = 2;
  int width = 32;
  int height = 32;
  int channels = 3;
};

// REQUIRES: 0 <= label < classes, sizes >= 8.
Picture draw(const PictureOrder& order, Dice& dice);

}  // namespace evenkeel::data_tool
