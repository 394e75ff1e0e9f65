// Fuzz target: files of CIFAR records.
#include <cstdint>

#include "tests/fuzz/check.h"
#include "trainer/data/cifar_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace evenkeel;  // NOLINT: a program of its own
  trainer::Dataset set;
  const auto status = trainer::append_cifar({reinterpret_cast<const char*>(data), size}, "fuzz", set);
  fuzz_check(status.ok() == (size > 0 && size % trainer::kCifarRecordBytes == 0), "whole records only");
  if (!status.ok()) return 0;
  fuzz_check(set.labels.size() * trainer::kCifarRecordBytes == size, "a label for each record");
  fuzz_check(set.image_bytes.size() + set.labels.size() == size, "every byte is used");
  return 0;
}
