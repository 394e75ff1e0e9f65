// Fuzz target: the framing of TFRecord files.
#include <cstdint>

#include "base/files_fake.h"
#include "tests/fuzz/check.h"
#include "trainer/data/tfrecord.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace evenkeel;  // NOLINT: a program of its own
  base::FakeFiles files;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  files.put("/f", bytes);
  trainer::FileWindow window(files, "/f", size);
  std::uint64_t end = 0;
  const auto status = trainer::walk_tfrecord(window, "/f", 1 << 16, [&](const trainer::TfrecordEntry& entry) {
    fuzz_check(entry.offset == end, "records follow each other");
    if (!entry.cause.empty() && entry.length == 0) return;
    end = entry.offset + trainer::kTfrecordHeaderBytes + entry.length + trainer::kTfrecordFooterBytes;
    fuzz_check(end <= size, "a whole record lies in the file");
    (void)trainer::tfrecord_data_fault(std::string_view(bytes).substr(
        entry.offset + trainer::kTfrecordHeaderBytes, entry.length + trainer::kTfrecordFooterBytes));
  });
  if (!status.ok())
    fuzz_check(status.error().code == base::ErrorCode::kCorruptData, "damage is named as such");
  return 0;
}
