// Between sets.cpp and its formats. Nobody else includes this.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tools/data/encode.h"
#include "tools/data/sets.h"

namespace evenkeel::data_tool::internal {

inline constexpr int kJpegQuality = 90;

struct Sample {
  std::int64_t index = 0;
  int label = 0;
  Picture picture;
};

// One sample's bytes as they go into its file, or an error.
using Encoder = std::function<base::Result<std::string>(const Sample&)>;

// A file that is written from front to back; what it held before is gone. Counts into the summary.
class Output {
 public:
  static base::Result<Output> create(const std::string& path, SetSummary& summary);
  base::Status append(std::string_view bytes);
  base::Status close();

 private:
  Output(std::string path, std::FILE* file, SetSummary& summary)
      : path_(std::move(path)), file_(file, std::fclose), summary_(&summary) {}

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  SetSummary* summary_;
};

base::Status make_folder(const std::string& path);

// Draws and encodes samples [begin, end) of the split with the options' threads; hands their bytes on in
// order. `split_number` makes the pictures of two splits differ.
struct Range {
  std::uint64_t split_number = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
base::Status each_sample(const SetOptions& options, Range range, int channels, const Encoder& encode,
                         const std::function<base::Status(std::int64_t, int, std::string)>& take);

// The range of file `number` of a split.
Range range_of_file(const SplitOptions& split, std::uint64_t split_number, int number);

// One function a format; each writes one split.
base::Status write_idx(const SetOptions& options, std::uint64_t split_number, SetSummary& summary);
base::Status write_cifar10(const SetOptions& options, std::uint64_t split_number, SetSummary& summary);
base::Status write_tfrecord(const SetOptions& options, std::uint64_t split_number, SetSummary& summary);
base::Status write_imagefolder(const SetOptions& options, std::uint64_t split_number, SetSummary& summary);
base::Status write_webdataset(const SetOptions& options, std::uint64_t split_number, SetSummary& summary);

}  // namespace evenkeel::data_tool::internal
