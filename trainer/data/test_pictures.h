// For tests of this folder: makes pictures, and files of each format that hold them. Deterministic.
#pragma once

#include <png.h>
#include <turbojpeg.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "contract/job/spec.h"
#include "trainer/data/image.h"

namespace evenkeel::trainer::testing {

inline std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline Image solid(int height, int width, std::vector<std::uint8_t> color) {
  Image image;
  image.reset(height, width, static_cast<int>(color.size()));
  for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = color[i % color.size()];
  return image;
}

// Smooth, so that JPEG keeps it nearly, and different everywhere.
inline Image gradient(int height, int width, int shade = 0) {
  Image image;
  image.reset(height, width, 3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      std::uint8_t* p = image.row(y) + 3 * x;
      p[0] = static_cast<std::uint8_t>(255 * y / height);
      p[1] = static_cast<std::uint8_t>(255 * x / width);
      p[2] = static_cast<std::uint8_t>(shade);
    }
  }
  return image;
}

struct JpegStyle {
  int quality = 95;
  int flags = 0;
  int subsampling = TJSAMP_444;
};

inline std::string compress(const std::uint8_t* pixels, int height, int width, int format,
                            const JpegStyle& style) {
  const tjhandle handle = tjInitCompress();
  unsigned char* out = nullptr;
  unsigned long size = 0;
  if (tjCompress2(handle, pixels, width, 0, height, format, &out, &size, style.subsampling, style.quality,
                  style.flags) != 0)
    std::abort();
  std::string bytes(reinterpret_cast<const char*>(out), size);
  tjFree(out);
  tjDestroy(handle);
  return bytes;
}

inline std::string jpeg(const Image& image, const JpegStyle& style = {}) {
  return compress(image.pixels.data(), image.height, image.width, TJPF_RGB, style);
}

inline std::string gray_jpeg(const Image& one_channel) {
  return compress(one_channel.pixels.data(), one_channel.height, one_channel.width, TJPF_GRAY,
                  {95, 0, TJSAMP_GRAY});
}

// Four inks as they go into the file; TurboJPEG writes YCCK with an Adobe marker.
inline std::string four_ink_jpeg(const Image& inks) {
  return compress(inks.pixels.data(), inks.height, inks.width, TJPF_CMYK, {});
}

// With an EXIF block of one entry.
inline std::string with_orientation(const std::string& jpeg_bytes, int orientation, bool big_endian = true) {
  std::string tiff = big_endian ? std::string("MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01", 18)
                                : std::string("II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 18);
  const char value = static_cast<char>(orientation);
  tiff += big_endian ? std::string({0, value, 0, 0}) : std::string({value, 0, 0, 0});
  tiff += std::string(4, '\0');
  const std::string body = std::string("Exif\0\0", 6) + tiff;
  const auto length = static_cast<unsigned>(body.size() + 2);
  return jpeg_bytes.substr(0, 2) + "\xff\xe1" + static_cast<char>(length >> 8) +
         static_cast<char>(length & 0xff) + body + jpeg_bytes.substr(2);
}

struct PngStyle {
  int bit_depth = 8;
  int color_type = PNG_COLOR_TYPE_RGB;
  bool interlaced = false;
  std::vector<png_color> palette;
};

// `rows`: as libpng takes them, one string a row.
inline std::string png_of(int height, int width, const PngStyle& style, std::vector<std::string> rows) {
  std::string out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &out,
      [](png_structp p, png_bytep data, png_size_t size) {
        static_cast<std::string*>(png_get_io_ptr(p))->append(reinterpret_cast<const char*>(data), size);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), style.bit_depth,
               style.color_type, style.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!style.palette.empty()) {
    png_set_PLTE(png, info, style.palette.data(), static_cast<int>(style.palette.size()));
  }
  png_write_info(png, info);
  std::vector<png_bytep> pointers;
  for (std::string& row : rows) pointers.push_back(reinterpret_cast<png_bytep>(row.data()));
  if (style.interlaced) png_set_interlace_handling(png);
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return out;
}

inline std::string png(const Image& rgb) {
  std::vector<std::string> rows;
  for (int y = 0; y < rgb.height; ++y) {
    rows.emplace_back(reinterpret_cast<const char*>(rgb.row(y)), rgb.row_bytes());
  }
  return png_of(rgb.height, rgb.width, {}, std::move(rows));
}

// Protobuf wire form.
inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  return out;
}

inline std::string field(int number, const std::string& content) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(content.size()) + content;
}

inline std::string feature_entry(const std::string& key, const std::string& feature) {
  return field(1, field(1, key) + field(2, feature));
}

inline std::string bytes_entry(const std::string& key, const std::string& value) {
  return feature_entry(key, field(1, field(1, value)));
}

inline std::string integer_entry(const std::string& key, std::int64_t value) {
  return feature_entry(key, field(3, field(1, varint(static_cast<std::uint64_t>(value)))));
}

inline std::string example(const std::string& image, std::int64_t label) {
  return field(1, bytes_entry("image/encoded", image) + integer_entry("image/class/label", label));
}

// The same, made `total` bytes long by a key that nobody reads.
inline std::string padded_example(const std::string& image, std::int64_t label, std::size_t total) {
  const std::string entries = bytes_entry("image/encoded", image) + integer_entry("image/class/label", label);
  for (std::size_t padding = 0; padding < total; ++padding) {
    std::string whole = field(1, entries + bytes_entry("padding", std::string(padding, 'p')));
    if (whole.size() == total) return whole;
  }
  std::abort();
}

// One member of a tar archive, padded to whole blocks.
inline std::string tar_member(const std::string& name, const std::string& content, char type = '0') {
  std::string header(512, '\0');
  const auto put = [&header](std::size_t at, const std::string& text) {
    header.replace(at, text.size(), text);
  };
  char number[16];
  put(0, name.substr(0, 100));
  put(100, "0000644");
  std::snprintf(number, sizeof number, "%011zo", content.size());
  put(124, number);
  put(136, "00000000000");
  header[156] = type;
  put(257, std::string("ustar\00000", 8));
  put(148, "        ");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(number, sizeof number, "%06o", sum);
  put(148, std::string(number) + std::string("\0 ", 2));
  const std::size_t padding = (512 - content.size() % 512) % 512;
  return header + content + std::string(padding, '\0');
}

inline std::string tar_end() {
  return std::string(1024, '\0');
}

// Of the formats of photographs.
inline contract::DatasetSpec photographs(const std::string& format, int height, int width) {
  contract::DatasetSpec spec;
  spec.format = format;
  spec.path = "/d";
  spec.eval_split = "";
  spec.image_size = {height, width};
  return spec;
}

}  // namespace evenkeel::trainer::testing
