// Fuzz target: tf.train.Example.
#include <cstdint>

#include "tests/fuzz/check.h"
#include "trainer/data/example.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace evenkeel;  // NOLINT: a program of its own
  const std::string_view record(reinterpret_cast<const char*>(data), size);
  const auto fields = trainer::parse_example(record);
  if (!fields.ok()) {
    fuzz_check(fields.error().code == base::ErrorCode::kCorruptData, "damage is named as such");
    return 0;
  }
  const std::string_view image = fields->image;
  fuzz_check(image.empty() || (image.data() >= record.data() &&
                               image.data() + image.size() <= record.data() + record.size()),
             "the image lies in the record");
  return 0;
}
