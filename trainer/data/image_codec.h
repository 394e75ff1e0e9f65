// From the bytes of a JPEG or PNG file to pixels, strictly: a picture that a decoder has any doubt about is
// kCorruptData, never a half-grey image. Called by split.cpp and sample_pipeline.cpp. Thread safe: decoders
// are kept per thread. No input raises a signal or takes memory that its size cannot justify.
//
// JPEG: baseline and progressive Huffman, 8 bits, 1, 3 or 4 components, always to RGB; grey is replicated.
//   CMYK and YCCK become RGB: R = C * K / 255 with an Adobe marker (whose values are inverted), else
//   R = (255 - C) * (255 - K) / 255. EXIF orientation is applied. Refused by name: arithmetic coding,
//   lossless, hierarchical, 12 bits. A warning of the decoder (truncated, bad code) is an error.
// PNG: every colour type, 1 to 16 bits, interlaced or not, to 8-bit RGB; 16 bits are rounded; alpha is
//   blended onto black, on the stored values; gamma and colour profiles are ignored. Any wrong checksum is an
//   error.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "trainer/data/image.h"

namespace evenkeel::trainer {

struct ImageLimits {
  std::int64_t max_side = 65'500;                   // of a JPEG by its own format: 65,535
  std::int64_t max_pixels = std::int64_t{1} << 28;  // 805 MB as RGB
};

enum class ImageFormat { kJpeg, kPng };

struct ImageHeader {
  ImageFormat format = ImageFormat::kJpeg;
  int height = 0;  // as seen: orientation is applied
  int width = 0;
  // JPEG only.
  int orientation = 1;  // EXIF, 1 to 8
  int components = 3;
  bool inverted = false;  // four components with an Adobe marker
};

// What the file says about itself, checked against the limits and against its own length. Messages are the
// cause alone ("truncated: ..."); the caller puts the record in front.
base::Result<ImageHeader> read_image_header(std::span<const std::uint8_t> bytes,
                                            const ImageLimits& limits = {});

// REQUIRES: header of these bytes; shrink is 1, 2, 4 or 8. A JPEG is decoded at 1/shrink of its size, rounded
// up; a PNG ignores it.
base::Result<Image> decode_image(std::span<const std::uint8_t> bytes, const ImageHeader& header,
                                 int shrink = 1);

}  // namespace evenkeel::trainer
