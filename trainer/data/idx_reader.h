// Reads data sets in IDX form (the form of MNIST and Fashion-MNIST), plain or gzip-compressed. Called once at
// start by every rank. Everything that a file claims is checked before memory is taken for it. No thread
// rules.
//
// Files of split "train": train-images-idx3-ubyte[.gz], train-labels-idx1-ubyte[.gz]; of "test": t10k-...;
// of any other split S: S-images-... . The plain file wins where both are there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/result.h"
#include "contract/job/spec.h"
#include "trainer/data/dataset.h"

namespace evenkeel::trainer {

struct IdxOptions {
  int num_classes = 0;  // labels must be below it; 0 = the largest label + 1
  contract::BadRecordAction bad_record_action = contract::BadRecordAction::kFail;
  std::int64_t max_skipped = 0;                      // with kSkip: one more is an error
  std::uint64_t max_bytes = std::uint64_t{8} << 30;  // of one file, uncompressed
};

// One split. Errors: kNotFound (folder or file), kCorruptData with file, record, byte offset, cause.
base::Result<Dataset> read_idx(base::Files& files, const std::string& folder, const std::string& split,
                               const IdxOptions& options);

// The parsers alone, on whole file contents; `file` is for messages. For tests and fuzzing as well.
base::Result<Dataset> parse_idx_images(std::string bytes, const std::string& file, std::uint64_t max_bytes);
base::Result<std::vector<std::int32_t>> parse_idx_labels(std::string_view bytes, const std::string& file,
                                                         std::uint64_t max_bytes);
// Decompresses a .gz file of IDX content; never writes more than the content's own header announces.
base::Result<std::string> gunzip_idx(std::string_view bytes, const std::string& file,
                                     std::uint64_t max_bytes);

}  // namespace evenkeel::trainer
