// Feeds stored inputs to a fuzz target without a fuzzer: every file of the folders named on the command line,
// and what is left of it when it is cut, so that each build runs the corpus. A crash is the failure; a folder
// without files is one too. With clang the same target is a real fuzzer: tools/dev/fuzz.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kCuts = 128;  // lengths tried for each file

std::vector<std::uint8_t> read(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

void feed(const std::vector<std::uint8_t>& input) {
  LLVMFuzzerTestOneInput(input.data(), input.size());
  const std::size_t stride = std::max<std::size_t>(1, input.size() / kCuts);
  for (std::size_t length = 0; length < input.size(); length += stride) {
    // A copy of that length: reading behind it is then visible to a sanitizer.
    const std::vector<std::uint8_t> cut(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(length));
    LLVMFuzzerTestOneInput(cut.data(), cut.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::vector<std::filesystem::path> paths;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(argv[i], error))
      paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) {
      std::printf("%s\n", path.c_str());
      std::fflush(stdout);  // the last line names the input that crashes
      feed(read(path));
    }
    if (paths.empty()) {
      std::fprintf(stderr, "%s: no inputs\n", argv[i]);
      return 1;
    }
  }
  return 0;
}
