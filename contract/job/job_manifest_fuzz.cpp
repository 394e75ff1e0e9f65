// Fuzz target: a TrainingJob as JSON, judged and decoded.
#include <cstdint>

#include "contract/job/validate.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace evenkeel;  // NOLINT: a program of its own
  const auto json = base::parse_json({reinterpret_cast<const char*>(data), size});
  if (!json.ok()) return 0;
  const auto job = contract::decode_job(*json);
  fuzz_check(job.ok() == contract::validate_job(*json).empty(), "decoding and judging agree");
  if (!job.ok()) {
    fuzz_check(!job.error().message.empty(), "a refusal has a reason");
    return 0;
  }
  fuzz_check(contract::with_defaults(job->spec_json) == job->spec_json, "defaults are filled in once");
  fuzz_check(contract::decode_spec(job->spec_json).ok(), "a spec with its defaults is valid");
  return 0;
}
