#include "trainer/data/image_codec.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "trainer/data/codec_internal.h"

namespace evenkeel::trainer {
namespace {

using codec_internal::corrupt;
using Bytes = std::span<const std::uint8_t>;

constexpr std::array<std::uint8_t, 3> kJpegStart = {0xFF, 0xD8, 0xFF};
constexpr std::array<std::uint8_t, 8> kPngStart = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

template <std::size_t n>
bool begins_with(Bytes bytes, const std::array<std::uint8_t, n>& start) {
  return bytes.size() >= n && std::equal(start.begin(), start.end(), bytes.begin());
}

std::string first_bytes(Bytes bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes.first(std::min<std::size_t>(bytes.size(), 4))) {
    std::array<char, 8> hex{};
    std::snprintf(hex.data(), hex.size(), " %02x", byte);
    text += hex.data();
  }
  return text;
}

}  // namespace

namespace codec_internal {

base::Status check_size(const char* format, std::int64_t height, std::int64_t width,
                        const ImageLimits& limits) {
  const std::string size = std::string("the ") + format + " is " + std::to_string(width) + " x " +
                           std::to_string(height) + " pixels";
  if (height < 1 || width < 1) return corrupt(size + ": it has no pixel");
  if (std::max(height, width) > limits.max_side) {
    return corrupt(size + ", above the limit of " + std::to_string(limits.max_side) + " a side");
  }
  if (height * width > limits.max_pixels) {
    return corrupt(size + ", above the limit of " + std::to_string(limits.max_pixels) + " in all");
  }
  return {};
}

}  // namespace codec_internal

base::Result<ImageHeader> read_image_header(Bytes bytes, const ImageLimits& limits) {
  if (bytes.empty()) return corrupt("the image is empty");
  if (begins_with(bytes, kJpegStart)) return codec_internal::read_jpeg_header(bytes, limits);
  if (begins_with(bytes, kPngStart)) return codec_internal::read_png_header(bytes, limits);
  return corrupt("neither JPEG nor PNG: the image begins with" + first_bytes(bytes));
}

base::Result<Image> decode_image(Bytes bytes, const ImageHeader& header, int shrink) {
  if (header.format == ImageFormat::kPng) return codec_internal::decode_png(bytes, header);
  return codec_internal::decode_jpeg(bytes, header, shrink);
}

}  // namespace evenkeel::trainer
