// Fuzz target: manifests as YAML text.
#include <cstdint>

#include "tests/fuzz/check.h"
#include "trainer/config/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace evenkeel;  // NOLINT: a program of its own
  const auto documents = trainer::parse_manifests({reinterpret_cast<const char*>(data), size});
  if (documents.ok()) return 0;
  fuzz_check(!documents.error().message.empty(), "a refusal has a reason");
  return 0;
}
