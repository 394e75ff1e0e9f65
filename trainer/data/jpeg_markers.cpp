#include "trainer/data/jpeg_markers.h"

#include <cstring>
#include <string>

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using Bytes = std::span<const std::uint8_t>;

Error bad_markers(const std::string& what) {
  return Error{ErrorCode::kCorruptData, what};
}

int big_endian_16(Bytes bytes, std::size_t at) {
  return bytes[at] << 8 | bytes[at + 1];
}

// A TIFF structure in one byte order.
class Tiff {
 public:
  explicit Tiff(Bytes bytes) : bytes_(bytes) {}

  // The orientation of the first directory; 1 where anything is amiss: a picture is not bad because of its
  // notes.
  int orientation() {
    if (bytes_.size() < 8) return 1;
    little_ = bytes_[0] == 'I';
    if (number(2, 2) != 42) return 1;
    const std::uint64_t directory = number(4, 4);
    if (directory + 2 > bytes_.size()) return 1;
    const std::uint64_t entries = number(directory, 2);
    for (std::uint64_t i = 0; i < entries; ++i) {
      const std::uint64_t at = directory + 2 + 12 * i;
      if (at + 12 > bytes_.size()) return 1;
      constexpr std::uint64_t kOrientation = 0x112, kShort = 3;
      if (number(at, 2) != kOrientation) continue;
      const auto value = static_cast<int>(number(at + 8, 2));
      return number(at + 2, 2) == kShort && value >= 1 && value <= 8 ? value : 1;
    }
    return 1;
  }

 private:
  std::uint64_t number(std::uint64_t at, int size) const {
    std::uint64_t value = 0;
    for (int i = 0; i < size; ++i) {
      value = value << 8 | bytes_[at + static_cast<std::uint64_t>(little_ ? size - 1 - i : i)];
    }
    return value;
  }

  Bytes bytes_;
  bool little_ = false;
};

bool begins_with(Bytes bytes, const char* text, std::size_t length) {
  return bytes.size() >= length && std::memcmp(bytes.data(), text, length) == 0;
}

// SOF0 to SOF15 without DHT, JPG and DAC, which share the row.
bool is_frame(int marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

base::Status read_frame(int marker, Bytes body, JpegMarkers& out) {
  if (body.size() < 6) return bad_markers("the JPEG frame header is too short");
  out.frame_type = marker & 0xF;
  out.precision = body[0];
  out.height = big_endian_16(body, 1);
  out.width = big_endian_16(body, 3);
  out.components = body[5];
  return {};
}

bool stands_alone(int marker) {
  return marker == 0x01 || (marker >= 0xD0 && marker <= 0xD7);
}

}  // namespace

base::Result<JpegMarkers> read_jpeg_markers(Bytes bytes) {
  JpegMarkers out;
  if (bytes.size() < 4) return bad_markers("truncated: the JPEG ends inside its first marker");
  std::size_t at = 2;  // behind SOI
  const auto truncated = [&] {
    return bad_markers("truncated: the JPEG has " + std::to_string(bytes.size()) +
                   " bytes and ends before its first scan");
  };
  while (true) {
    // Any number of 0xFF may stand in front of a marker.
    if (at + 2 > bytes.size()) return truncated();
    if (bytes[at] != 0xFF) return bad_markers("no JPEG marker at byte " + std::to_string(at) + " of the image");
    while (at < bytes.size() && bytes[at] == 0xFF) ++at;
    if (at >= bytes.size()) return truncated();
    const int marker = bytes[at++];
    if (stands_alone(marker)) continue;
    if (marker == 0xD9) return bad_markers("the JPEG ends without a picture");
    if (at + 2 > bytes.size()) return truncated();
    const auto length = static_cast<std::size_t>(big_endian_16(bytes, at));
    if (length < 2)
      return bad_markers("a JPEG marker at byte " + std::to_string(at) + " has length " + std::to_string(length));
    if (length > bytes.size() - at) return truncated();
    const Bytes body = bytes.subspan(at + 2, length - 2);
    if (is_frame(marker)) EVENKEEL_TRY(read_frame(marker, body, out));
    if (marker == 0xEE && begins_with(body, "Adobe", 5)) out.adobe = true;
    if (marker == 0xE1 && begins_with(body, "Exif\0\0", 6))
      out.orientation = Tiff(body.subspan(6)).orientation();
    if (marker == 0xDA) break;
    at += length;
  }
  if (out.components == 0) return bad_markers("the JPEG has a scan without a frame header");
  return out;
}

}  // namespace evenkeel::trainer
