// Fuzz target: the JPEG decoder behind image_codec.h.
#include <cstdint>

#include "tests/fuzz/check.h"
#include "trainer/data/image_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace evenkeel;  // NOLINT: a program of its own
  const std::span<const std::uint8_t> bytes(data, size);
  const auto header = trainer::read_image_header(bytes, {4096, 1 << 20});
  if (!header.ok()) return 0;
  const auto image = trainer::decode_image(bytes, *header, size % 2 == 0 ? 1 : 4);
  if (!image.ok()) return 0;
  fuzz_check(image->channels == 3 && image->height >= 1 && image->width >= 1, "a picture has pixels");
  fuzz_check(image->pixels.size() == image->row_bytes() * static_cast<std::size_t>(image->height),
             "all of them");
  return 0;
}
