// The only place that knows TurboJPEG. Its calls return an error for a warning too, which is what is wanted:
// a truncated file is a warning to it, with a half-grey picture.
#include <turbojpeg.h>

#include <array>
#include <cstring>
#include <string>

#include "trainer/data/codec_internal.h"
#include "trainer/data/jpeg_markers.h"

namespace evenkeel::trainer::codec_internal {
namespace {

using base::Error;
using base::Result;
using base::Status;
using Bytes = std::span<const std::uint8_t>;

// Stop at the first doubt, and after 500 scans: more is an attempt to keep the decoder busy.
constexpr int kFlags = TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS;

class Decoder {
 public:
  Decoder() : handle_(tjInitDecompress()) {}
  ~Decoder() {
    if (handle_ != nullptr) tjDestroy(handle_);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  Status decode(Bytes bytes, int width, int height, int format, std::uint8_t* out) {
    if (handle_ == nullptr) return Error{base::ErrorCode::kInternal, "TurboJPEG cannot start"};
    const int code =
        tjDecompress2(handle_, bytes.data(), bytes.size(), out, width, 0, height, format, kFlags);
    if (code == 0) return {};
    return corrupt(std::string("JPEG: ") + tjGetErrorStr2(handle_));
  }

 private:
  tjhandle handle_;
};

Decoder& decoder() {
  thread_local Decoder mine;
  return mine;
}

Status check_kind(const JpegMarkers& markers) {
  if (markers.frame_type > 2) {
    const bool lossless = (markers.frame_type & 3) == 3;
    const bool hierarchical = markers.frame_type >= 5 && (markers.frame_type & 4) != 0;
    const char* kind = lossless ? "lossless" : hierarchical ? "hierarchical" : "arithmetic-coded";
    return corrupt(std::string("the JPEG is ") + kind + ", which is not supported: convert it to baseline");
  }
  if (markers.precision != 8) {
    return corrupt("the JPEG has " + std::to_string(markers.precision) +
                   " bits a sample, only 8 are supported: convert it");
  }
  if (markers.components != 1 && markers.components != 3 && markers.components != 4) {
    return corrupt("the JPEG has " + std::to_string(markers.components) +
                   " components, only 1, 3 and 4 are supported");
  }
  return {};
}

// Each block of 8 x 8 pixels of the densest component takes one bit at least, so a short file cannot hold a
// large picture: said before memory is taken for it.
Status check_plausible(const JpegMarkers& markers, std::size_t bytes) {
  constexpr std::int64_t kMaxPixelsOfByte = 8 * 64;
  const std::int64_t pixels = std::int64_t{markers.height} * markers.width;
  if (pixels / kMaxPixelsOfByte <= static_cast<std::int64_t>(bytes)) return {};
  return corrupt("truncated: " + std::to_string(bytes) + " bytes cannot hold the announced " +
                 std::to_string(markers.width) + " x " + std::to_string(markers.height) + " pixels");
}

void cmyk_to_rgb(const std::vector<std::uint8_t>& cmyk, bool inverted, std::vector<std::uint8_t>& rgb) {
  const auto mixed = [inverted](int ink, int black) {
    const int product = inverted ? ink * black : (255 - ink) * (255 - black);
    return static_cast<std::uint8_t>((product + 127) / 255);
  };
  std::uint8_t* out = rgb.data();
  for (std::size_t i = 0; i + 3 < cmyk.size(); i += 4) {
    for (std::size_t c = 0; c < 3; ++c) *out++ = mixed(cmyk[i + c], cmyk[i + 3]);
  }
}

bool swaps_sides(int orientation) {
  return orientation >= 5;
}

// As EXIF means it: 1 upright, 2 mirrored, 3 half turn, 4 upside down mirrored, 5 to 8 the same four with
// rows and columns exchanged.
Image upright(const Image& coded, int orientation) {
  const bool swap = swaps_sides(orientation);
  Image out;
  out.reset(swap ? coded.width : coded.height, swap ? coded.height : coded.width, coded.channels);
  const bool flip_rows = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool flip_columns = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  std::uint8_t* at = out.pixels.data();
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x, at += out.channels) {
      int from_y = swap ? x : y;
      int from_x = swap ? y : x;
      if (flip_rows) from_y = coded.height - 1 - from_y;
      if (flip_columns) from_x = coded.width - 1 - from_x;
      std::memcpy(at, coded.row(from_y) + from_x * coded.channels, static_cast<std::size_t>(out.channels));
    }
  }
  return out;
}

}  // namespace

Result<ImageHeader> read_jpeg_header(Bytes bytes, const ImageLimits& limits) {
  EVENKEEL_ASSIGN(const JpegMarkers markers, read_jpeg_markers(bytes));
  EVENKEEL_TRY(check_kind(markers));
  EVENKEEL_TRY(check_size("JPEG", markers.height, markers.width, limits));
  EVENKEEL_TRY(check_plausible(markers, bytes.size()));
  ImageHeader header;
  header.format = ImageFormat::kJpeg;
  const bool swap = swaps_sides(markers.orientation);
  header.height = swap ? markers.width : markers.height;
  header.width = swap ? markers.height : markers.width;
  header.orientation = markers.orientation;
  header.components = markers.components;
  header.inverted = markers.adobe;
  return header;
}

Result<Image> decode_jpeg(Bytes bytes, const ImageHeader& header, int shrink) {
  const bool swap = swaps_sides(header.orientation);
  const auto shrunk = [shrink](int size) { return (size + shrink - 1) / shrink; };
  Image image;
  image.reset(shrunk(swap ? header.width : header.height), shrunk(swap ? header.height : header.width), 3);
  if (header.components == 4) {
    std::vector<std::uint8_t> cmyk(image.pixels.size() / 3 * 4);
    EVENKEEL_TRY(decoder().decode(bytes, image.width, image.height, TJPF_CMYK, cmyk.data()));
    cmyk_to_rgb(cmyk, header.inverted, image.pixels);
  } else {
    EVENKEEL_TRY(decoder().decode(bytes, image.width, image.height, TJPF_RGB, image.pixels.data()));
  }
  if (header.orientation == 1) return image;
  return upright(image, header.orientation);
}

}  // namespace evenkeel::trainer::codec_internal
