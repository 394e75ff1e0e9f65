// Fuzz target: tar archives.
#include <cstdint>

#include "base/files_fake.h"
#include "tests/fuzz/check.h"
#include "trainer/data/tar_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace evenkeel;  // NOLINT: a program of its own
  base::FakeFiles files;
  files.put("/f", std::string(reinterpret_cast<const char*>(data), size));
  trainer::FileWindow window(files, "/f", size);
  std::uint64_t before = 0;
  int faults = 0;
  const auto status = trainer::walk_tar(
      window, "/f",
      [&](const trainer::TarMember& member) -> base::Status {
        fuzz_check(member.header_offset >= before, "members follow each other");
        fuzz_check(member.data_offset + member.size <= size, "a whole member lies in the file");
        before = member.data_offset + member.size;
        return {};
      },
      [&](const trainer::TarFault&) { ++faults; });
  fuzz_check(faults <= 1 && (status.ok() || faults == 0), "one end");
  return 0;
}
