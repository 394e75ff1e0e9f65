// Reads CIFAR-10 in its binary form: records of one label byte and 3 planes (red, green, blue) of 32 x 32
// bytes. Called by open_dataset.cpp, once at start. No thread rules.
//
// Files of split "train": data_batch_*.bin; where there is none, and for any other split S: S*.bin, so "test"
// has test_batch.bin. In the order of their bytes.
#pragma once

#include <string>
#include <string_view>

#include "base/files.h"
#include "base/result.h"
#include "trainer/data/dataset.h"

namespace evenkeel::trainer {

inline constexpr std::size_t kCifarSide = 32;
inline constexpr std::size_t kCifarRecordBytes = 1 + 3 * kCifarSide * kCifarSide;

// Appends the records of one file, pixels interleaved. kCorruptData: empty, or not a whole number of records.
// Labels are not judged.
base::Status append_cifar(std::string_view bytes, const std::string& file, Dataset& data);

// One split. num_classes 0 = 10. Labels out of range are in `bad`, and kSkippedLabel.
base::Result<Dataset> read_cifar(base::Files& files, const std::string& folder, const std::string& split,
                                 int num_classes);

}  // namespace evenkeel::trainer
