// From `spec.dataset` to its splits: the one place that knows which formats there are. Called once at start
// by every rank and by `evenkeel-trainer plan`. No thread rules.
#pragma once

#include <memory>

#include "base/files.h"
#include "base/result.h"
#include "contract/job/spec.h"
#include "trainer/data/split.h"

namespace evenkeel::trainer {

struct SplitPair {
  std::unique_ptr<Split> train;
  std::unique_ptr<Split> eval;  // null where spec.eval_split is empty

  std::uint64_t resident_bytes() const {
    return train->resident_bytes() + (eval ? eval->resident_bytes() : 0);
  }
};

// Both splits of a job; `files` must outlive them. num_classes: what the model fixes (output_classes() in
// trainer/model/model.h), 0 = the data set decides, which format tfrecord cannot without reading every
// record: there it is an error. The train split decides, the eval split must obey.
//
// Errors: kNotFound (folder, file, split), kCorruptData with file, record, byte offset and cause,
// kInvalidInput and kUnsupported for what the job should change. A train split without usable samples is an
// error. Records that are known to be bad from the start obey spec.bad_record_action here already: kFail
// reports the first one, kSkip allows spec.max_skipped for each split by itself.
base::Result<SplitPair> open_dataset(base::Files& files, const contract::DatasetSpec& spec, int num_classes);

}  // namespace evenkeel::trainer
