// A decoded picture: rows of interleaved bytes, top to bottom. A value; made by a codec (image_codec.h) or a
// split, changed by resize.h and augment.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace evenkeel::trainer {

struct Image {
  int height = 0;
  int width = 0;
  int channels = 0;
  std::vector<std::uint8_t> pixels;  // (height, width, channels)

  // Keeps the memory of the picture before where it is large enough.
  void reset(int new_height, int new_width, int new_channels) {
    height = new_height;
    width = new_width;
    channels = new_channels;
    pixels.resize(static_cast<std::size_t>(height) * static_cast<std::size_t>(width) *
                  static_cast<std::size_t>(channels));
  }
  std::size_t row_bytes() const {
    return static_cast<std::size_t>(width) * static_cast<std::size_t>(channels);
  }
  const std::uint8_t* row(int y) const { return pixels.data() + static_cast<std::size_t>(y) * row_bytes(); }
  std::uint8_t* row(int y) { return pixels.data() + static_cast<std::size_t>(y) * row_bytes(); }
};

}  // namespace evenkeel::trainer
