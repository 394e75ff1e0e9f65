// libFuzzer target of the IDX parsers. Not part of the library:
//   clang++ -std=c++20 -fsanitize=fuzzer,address,undefined -I. trainer/data/idx_*.cpp base/result.cpp -lz -o
//   idx_fuzz
// (idx_reader.cpp pulls in base/files.h only; link base for it.)
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
