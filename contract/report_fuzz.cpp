// Fuzz target: the coordinator's report, which the operator reads from a pod that a user's program may be in.
#include <cstdint>

#include "contract/report.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace evenkeel;  // NOLINT: a program of its own
  const auto json = base::parse_json({reinterpret_cast<const char*>(data), size});
  if (!json.ok()) return 0;
  const auto report = contract::decode_report(*json);
  if (!report.ok()) {
    fuzz_check(!report.error().message.empty(), "a refusal has a reason");
    return 0;
  }
  const base::Json written = contract::to_json(*report);
  const auto again = contract::decode_report(written);
  fuzz_check(again.ok() && contract::to_json(*again) == written, "a report can be written again");
  fuzz_check(!contract::termination_message(*report).empty(), "a report becomes a termination message");
  return 0;
}
