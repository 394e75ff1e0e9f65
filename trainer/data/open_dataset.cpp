#include "trainer/data/open_dataset.h"

#include "trainer/data/format.h"
#include "trainer/data/idx_reader.h"
#include "trainer/data/resident_split.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Status;

OpenedSplit open_split(const FormatRequest& request) {
  const std::string& format = request.spec.format;
  if (format == "idx") return open_idx(request);
  if (format == "cifar10") return open_cifar(request);
  if (request.spec.image_size.size() != 2) {
    return Error{ErrorCode::kInvalidInput, "dataset.image.size is needed for format " + format +
                                               ", whose images may differ in size: give height and width"};
  }
  if (format == "tfrecord") return open_tfrecord(request);
  if (format == "imagefolder") return open_imagefolder(request);
  if (format == "webdataset") return open_webdataset(request);
  return Error{ErrorCode::kUnsupported, "dataset.format " + format + " is not known to this trainer"};
}

// The policy for records that are known to be bad before any is read.
Status judge_known_bad(const Split& split, const contract::DatasetSpec& spec) {
  const auto& bad = split.known_bad();
  if (bad.empty()) return {};
  if (spec.bad_record_action == contract::BadRecordAction::kFail) {
    return Error{ErrorCode::kCorruptData, bad.begin()->second};
  }
  if (static_cast<std::int64_t>(bad.size()) <= spec.max_skipped) return {};
  return Error{ErrorCode::kCorruptData, bad.begin()->second + ": " + std::to_string(bad.size()) +
                                            " bad records, more than dataset.onBadRecord.maxSkipped = " +
                                            std::to_string(spec.max_skipped)};
}

std::string size_text(const Split& split) {
  const auto& shape = split.info().sample_shape;
  return std::to_string(shape[0]) + "x" + std::to_string(shape[1]) +
         (shape[2] == 1 ? "" : "x" + std::to_string(shape[2]));
}

Status check_train(const Split& train, const contract::DatasetSpec& spec) {
  const std::int64_t samples = train.info().samples;
  if (samples > static_cast<std::int64_t>(train.known_bad().size())) return {};
  return Error{ErrorCode::kCorruptData, "split " + spec.train_split + " in " + spec.path + " has " +
                                            std::to_string(samples) +
                                            " records, 0 usable samples: there is nothing to train on"};
}

Status check_eval(const Split& train, const Split& eval) {
  if (eval.info().sample_shape == train.info().sample_shape) return {};
  return Error{ErrorCode::kCorruptData, "images of split " + eval.info().name + " are " + size_text(eval) +
                                            ", of split " + train.info().name + " " + size_text(train) +
                                            ": they must agree"};
}

}  // namespace

OpenedSplit open_idx(const FormatRequest& request) {
  IdxOptions options;
  options.num_classes = request.num_classes;
  options.bad_record_action = request.spec.bad_record_action;
  options.max_skipped = request.spec.max_skipped;
  EVENKEEL_ASSIGN(Dataset data, read_idx(request.files, request.spec.path, request.split, options));
  return std::unique_ptr<Split>(std::make_unique<ResidentSplit>(std::move(data), request.spec.image_size));
}

base::Result<SplitPair> open_dataset(base::Files& files, const contract::DatasetSpec& spec, int num_classes) {
  if (!files.exists(spec.path)) {
    return Error{ErrorCode::kNotFound, "the data set folder " + spec.path +
                                           " does not exist: check dataset.path and dataset.volume"};
  }
  SplitPair pair;
  EVENKEEL_ASSIGN(pair.train, open_split({files, spec, spec.train_split, num_classes, nullptr}));
  EVENKEEL_TRY(judge_known_bad(*pair.train, spec));
  EVENKEEL_TRY(check_train(*pair.train, spec));
  if (spec.eval_split.empty()) return pair;
  const int classes = pair.train->info().num_classes;
  EVENKEEL_ASSIGN(pair.eval, open_split({files, spec, spec.eval_split, classes, pair.train.get()}));
  EVENKEEL_TRY(judge_known_bad(*pair.eval, spec));
  EVENKEEL_TRY(check_eval(*pair.train, *pair.eval));
  return pair;
}

}  // namespace evenkeel::trainer
