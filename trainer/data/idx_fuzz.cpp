// Fuzz target: the IDX parsers, plain and compressed.
#include "trainer/data/idx_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace evenkeel::trainer;  // NOLINT: a program of its own
  constexpr std::uint64_t kMaxBytes = 1 << 20;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  (void)parse_idx_images(bytes, "fuzz", kMaxBytes).ok();
  (void)parse_idx_labels(bytes, "fuzz", kMaxBytes).ok();
  const auto content = gunzip_idx(bytes, "fuzz", kMaxBytes);
  if (content.ok()) (void)parse_idx_images(*content, "fuzz", kMaxBytes).ok();
  return 0;
}
