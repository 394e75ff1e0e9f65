// The two halves behind image_codec.h. Nobody else includes this.
#pragma once

#include "trainer/data/image_codec.h"

namespace evenkeel::trainer::codec_internal {

base::Result<ImageHeader> read_jpeg_header(std::span<const std::uint8_t> bytes, const ImageLimits& limits);
base::Result<Image> decode_jpeg(std::span<const std::uint8_t> bytes, const ImageHeader& header, int shrink);
base::Result<ImageHeader> read_png_header(std::span<const std::uint8_t> bytes, const ImageLimits& limits);
base::Result<Image> decode_png(std::span<const std::uint8_t> bytes, const ImageHeader& header);

inline base::Error corrupt(std::string what) {
  return base::Error{base::ErrorCode::kCorruptData, std::move(what)};
}
base::Status check_size(const char* format, std::int64_t height, std::int64_t width,
                        const ImageLimits& limits);

}  // namespace evenkeel::trainer::codec_internal
