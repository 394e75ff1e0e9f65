// The markers in front of a JPEG's first scan: what the decoder must be told, and what it would refuse with a
// message that no user understands. Pure; called by jpeg_codec.cpp.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"

namespace evenkeel::trainer {

struct JpegMarkers {
  int frame_type = 0;  // the last hex digit of SOF: 0 baseline, 1 extended, 2 progressive
  int height = 0;      // as coded
  int width = 0;
  int components = 0;
  int precision = 0;  // bits
  bool adobe = false;
  int orientation = 1;  // EXIF, 1 to 8; 1 where it is absent or nonsense
};

// Up to the start of the first scan. kCorruptData with the cause; nothing is judged that the decoder judges.
base::Result<JpegMarkers> read_jpeg_markers(std::span<const std::uint8_t> bytes);

}  // namespace evenkeel::trainer
