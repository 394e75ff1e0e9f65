// Whole data sets: pictures drawn and encoded by some threads, written in order into the files of a format.
// The same bytes for the same options, whatever the machine or the number of threads. Called by main.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace evenkeel::data_tool {

struct SplitOptions {
  std::string name;
  std::int64_t samples = 0;
  int files = 1;
};

struct SetOptions {
  std::string format;  // idx | cifar10 | tfrecord | imagefolder | webdataset
  std::string out;     // folder, made where it is missing
  int classes = 10;
  // How often each class comes up; empty: in turn, 0 1 2 ... 0 1 2 ...
  std::vector<double> shares;
  std::vector<SplitOptions> splits;
  int width_low = 64, width_high = 64;  // drawn for each image; both included
  int height_low = 64, height_high = 64;
  std::uint64_t seed = 1;
  int threads = 2;
};

struct SetSummary {
  std::int64_t samples = 0;
  std::int64_t files = 0;
  std::uint64_t bytes = 0;
};

// The look-alike of the Cassava leaf set: 5 classes, 5,656 + 1,889 + 1,885 JPEG records of varying size.
SetOptions cassava(const std::string& out);

// kInvalidInput for options that the format cannot hold; kIo with the path.
base::Result<SetSummary> write_set(const SetOptions& options);

}  // namespace evenkeel::data_tool
