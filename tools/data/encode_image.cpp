// JPEG by libjpeg-turbo, PNG by libpng's simplified interface.
#include <png.h>
#include <turbojpeg.h>

#include <memory>

#include "tools/data/encode.h"

namespace evenkeel::data_tool {

base::Result<std::string> encode_jpeg(const Picture& picture, int quality) {
  const std::unique_ptr<void, int (*)(void*)> handle(tjInitCompress(), tjDestroy);
  if (!handle)
    return base::Error{base::ErrorCode::kInternal,
                       "JPEG: no compressor: " + std::string(tjGetErrorStr2(nullptr))};
  unsigned char* data = nullptr;
  unsigned long size = 0;
  const bool gray = picture.channels == 1;
  const int status = tjCompress2(handle.get(), picture.pixels.data(), picture.width, 0, picture.height,
                                 gray ? TJPF_GRAY : TJPF_RGB, &data, &size, gray ? TJSAMP_GRAY : TJSAMP_420,
                                 quality, TJFLAG_ACCURATEDCT);
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owner(data, tjFree);
  if (status != 0)
    return base::Error{base::ErrorCode::kInternal, "JPEG: " + std::string(tjGetErrorStr2(handle.get()))};
  return std::string(reinterpret_cast<const char*>(data), size);
}

base::Result<std::string> encode_png(const Picture& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = picture.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  if (png_image_write_to_memory(&image, nullptr, &size, 0, picture.pixels.data(), 0, nullptr) == 0)
    return base::Error{base::ErrorCode::kInternal, "PNG: " + std::string(image.message)};
  std::string out(size, '\0');
  if (png_image_write_to_memory(&image, out.data(), &size, 0, picture.pixels.data(), 0, nullptr) == 0)
    return base::Error{base::ErrorCode::kInternal, "PNG: " + std::string(image.message)};
  out.resize(size);
  return out;
}

}  // namespace evenkeel::data_tool
