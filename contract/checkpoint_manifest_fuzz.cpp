// Fuzz target: manifest.json of a checkpoint.
#include <cstdint>

#include "contract/checkpoint_format.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace evenkeel;  // NOLINT: a program of its own
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = base::parse_json(text, {contract::kMaxManifestBytes, 16});
  if (!json.ok()) return 0;
  const auto manifest = contract::decode_manifest(*json);
  if (!manifest.ok()) {
    fuzz_check(!manifest.error().message.empty(), "a refusal has a reason");
    return 0;
  }
  for (const contract::CheckpointFile& file : manifest->files)
    fuzz_check(file.name.find('/') == std::string::npos, "no file lies outside the folder");
  const base::Json written = contract::to_json(*manifest);
  const auto again = contract::decode_manifest(written);
  fuzz_check(again.ok() && contract::to_json(*again) == written, "a manifest can be written again");
  return 0;
}
