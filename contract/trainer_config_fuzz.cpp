// Fuzz target: the trainer's configuration, with the job's spec inside.
#include <cstdint>

#include "contract/trainer_config.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace evenkeel;  // NOLINT: a program of its own
  const auto json = base::parse_json({reinterpret_cast<const char*>(data), size});
  if (!json.ok()) return 0;
  const auto config = contract::decode_trainer_config(*json);
  if (!config.ok()) {
    fuzz_check(!config.error().message.empty(), "a refusal has a reason");
    return 0;
  }
  const base::Json written = contract::to_json(*config);
  const auto again = contract::decode_trainer_config(written);
  fuzz_check(again.ok() && contract::to_json(*again) == written, "a configuration can be written again");
  return 0;
}
