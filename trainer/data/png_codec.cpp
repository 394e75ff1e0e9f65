// The only place that knows libpng. It reports errors by longjmp, so each call into it is in a function of
// its own without objects that have destructors; all memory belongs to the callers.
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <string>
#include <vector>

#include "trainer/data/codec_internal.h"

namespace evenkeel::trainer::codec_internal {
namespace {

using base::Error;
using base::Result;
using base::Status;
using Bytes = std::span<const std::uint8_t>;

// What libpng's callbacks see. Plain data: it lives across longjmp.
struct Source {
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;
  std::size_t at = 0;
  char message[160] = {};
};

void read_bytes(png_structp png, png_bytep out, png_size_t count) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (count > source->size - source->at) png_error(png, "truncated: the file ends too early");
  std::memcpy(out, source->data + source->at, count);
  source->at += count;
}

void on_error(png_structp png, png_const_charp message) {
  auto* source = static_cast<Source*>(png_get_error_ptr(png));
  std::strncpy(source->message, message, sizeof source->message - 1);
  longjmp(png_jmpbuf(png), 1);
}

// Remarks on colour profiles and the like; damage is an error by itself, see png_set_crc_action.
void on_warning(png_structp, png_const_charp) {}

// The structures of libpng, freed in every case.
class Reader {
 public:
  explicit Reader(Bytes bytes) {
    source_.data = bytes.data();
    source_.size = bytes.size();
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source_, on_error, on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~Reader() {
    if (png_ != nullptr) png_destroy_read_struct(&png_, info_ != nullptr ? &info_ : nullptr, nullptr);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Up to the first byte of pixels, with everything set so that rows come as RGB or RGBA of 8 bits.
  Status begin() {
    if (info_ == nullptr) return Error{base::ErrorCode::kInternal, "libpng cannot start"};
    if (!begin_guarded()) return failure();
    return {};
  }
  // REQUIRES: begun; rows[i] has row_bytes() bytes.
  Status finish(png_bytep* rows) {
    if (!finish_guarded(rows)) return failure();
    return {};
  }

  std::int64_t height() const { return png_get_image_height(png_, info_); }
  std::int64_t width() const { return png_get_image_width(png_, info_); }
  int channels() const { return png_get_channels(png_, info_); }
  std::size_t row_bytes() const { return png_get_rowbytes(png_, info_); }
  // Bits of a pixel as it is in the file.
  std::int64_t stored_bits() const { return stored_bits_; }

 private:
  bool begin_guarded() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, &source_, read_bytes);
    png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    // The sizes are judged by check_size, with our words; chunks besides pixels are of no use to us.
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_chunk_malloc_max(png_, 8 << 20);
    png_set_chunk_cache_max(png_, 64);
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, 0);
    png_read_info(png_, info_);
    stored_bits_ = std::int64_t{png_get_bit_depth(png_, info_)} * png_get_channels(png_, info_);
    png_set_expand(png_);  // palette, grey below 8 bits, transparent colours
    png_set_scale_16(png_);
    png_set_gray_to_rgb(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  bool finish_guarded(png_bytep* rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);  // checks what follows the pixels, too
    return true;
  }

  Error failure() const { return corrupt(std::string("PNG: ") + source_.message); }

  Source source_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::int64_t stored_bits_ = 0;
};

// Deflate makes a thousandth at best: a short file cannot hold a large picture, and gets no memory for it.
Status check_plausible(const Reader& reader, std::size_t bytes) {
  constexpr std::int64_t kMaxRatio = 1032;
  const std::int64_t raw = reader.height() * reader.width() / 8 * reader.stored_bits();
  if (raw / kMaxRatio <= static_cast<std::int64_t>(bytes)) return {};
  return corrupt("truncated: " + std::to_string(bytes) + " bytes cannot hold the announced " +
                 std::to_string(reader.width()) + " x " + std::to_string(reader.height()) + " pixels");
}

void blend_onto_black(const std::vector<std::uint8_t>& rgba, std::vector<std::uint8_t>& rgb) {
  std::uint8_t* out = rgb.data();
  for (std::size_t i = 0; i + 3 < rgba.size(); i += 4) {
    for (std::size_t c = 0; c < 3; ++c) {
      *out++ = static_cast<std::uint8_t>((rgba[i + c] * rgba[i + 3] + 127) / 255);
    }
  }
}

}  // namespace

Result<ImageHeader> read_png_header(Bytes bytes, const ImageLimits& limits) {
  Reader reader(bytes);
  EVENKEEL_TRY(reader.begin());
  EVENKEEL_TRY(check_size("PNG", reader.height(), reader.width(), limits));
  EVENKEEL_TRY(check_plausible(reader, bytes.size()));
  ImageHeader header;
  header.format = ImageFormat::kPng;
  header.height = static_cast<int>(reader.height());
  header.width = static_cast<int>(reader.width());
  return header;
}

Result<Image> decode_png(Bytes bytes, const ImageHeader& header) {
  Reader reader(bytes);
  EVENKEEL_TRY(reader.begin());
  const int channels = reader.channels();
  const auto height = static_cast<std::size_t>(header.height);
  if (reader.height() != header.height || reader.width() != header.width ||
      (channels != 3 && channels != 4) ||
      reader.row_bytes() != static_cast<std::size_t>(header.width) * static_cast<std::size_t>(channels)) {
    return Error{base::ErrorCode::kInternal, "PNG: the layout of rows is not what was asked for"};
  }
  std::vector<std::uint8_t> pixels(height * reader.row_bytes());
  std::vector<png_bytep> rows(height);
  for (std::size_t y = 0; y < height; ++y) rows[y] = pixels.data() + y * reader.row_bytes();
  EVENKEEL_TRY(reader.finish(rows.data()));
  Image image;
  image.reset(header.height, header.width, 3);
  if (channels == 3) {
    image.pixels = std::move(pixels);
  } else {
    blend_onto_black(pixels, image.pixels);
  }
  return image;
}

}  // namespace evenkeel::trainer::codec_internal
