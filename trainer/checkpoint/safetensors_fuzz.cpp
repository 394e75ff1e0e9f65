// Fuzz target: a safetensors file, header and data.
#include <cstdint>

#include "base/files_fake.h"
#include "tests/fuzz/check.h"
#include "trainer/checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace evenkeel;  // NOLINT: a program of its own
  base::FakeFiles files;
  files.put("/w", std::string(reinterpret_cast<const char*>(data), size));
  const auto index = trainer::read_safetensors_index(files, "/w");
  if (!index.ok()) {
    fuzz_check(!index.error().message.empty(), "a refusal has a reason");
    return 0;
  }
  std::uint64_t at = 0;
  for (const auto& entry : index->entries) {
    fuzz_check(entry.begin == at && entry.end >= entry.begin, "tensors tile the data");
    at = entry.end;
  }
  fuzz_check(index->data_offset + at == size, "tensors end with the file");
  // What was accepted can be written again, and means the same.
  const std::string header = trainer::safetensors_header(index->entries);
  const auto again = trainer::parse_safetensors_header(std::string_view(header).substr(8), at);
  fuzz_check(again.ok() && again->entries.size() == index->entries.size(), "a header can be written again");
  for (std::size_t i = 0; i < again->entries.size(); ++i) {
    fuzz_check(again->entries[i].name == index->entries[i].name &&
                   again->entries[i].end == index->entries[i].end &&
                   again->entries[i].shape == index->entries[i].shape,
               "a header that was written again means the same");
  }
  return 0;
}
