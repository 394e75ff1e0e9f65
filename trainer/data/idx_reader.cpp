// Finds the files of a split, reads them and checks images and labels against each other.
#include "trainer/data/idx_reader.h"

#include <algorithm>

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

struct IdxContent {
  std::string file;  // the path that was read
  std::string bytes;
};

std::string file_prefix(const std::string& split) {
  return split == "test" ? "t10k" : split;
}

// A folder where a file should be, or a file that is much too long: bad data, whatever the call was.
Error as_bad_data(Error error) {
  if (error.code == ErrorCode::kInvalidInput) error.code = ErrorCode::kCorruptData;
  return error;
}

// `name` or `name`.gz in `folder`.
Result<IdxContent> read_content(base::Files& files, const std::string& folder, const std::string& name,
                                std::uint64_t max_bytes) {
  const std::string plain = folder + "/" + name;
  if (files.exists(plain)) {
    Result<std::string> bytes = files.read(plain, max_bytes);
    if (!bytes.ok()) return as_bad_data(bytes.error());
    return IdxContent{plain, std::move(*bytes)};
  }
  const std::string packed = plain + ".gz";
  if (!files.exists(packed)) {
    return Error{ErrorCode::kNotFound,
                 "neither " + plain + " nor " + packed +
                     " exists: check dataset.path and dataset.split, or mount the volume"};
  }
  const Result<std::string> bytes = files.read(packed, max_bytes);
  if (!bytes.ok()) return as_bad_data(bytes.error());
  EVENKEEL_ASSIGN(std::string content, gunzip_idx(*bytes, packed, max_bytes));
  return IdxContent{packed, std::move(content)};
}

constexpr std::int64_t kLabelHeaderBytes = 8;

std::string bad_label_text(const std::string& file, std::int64_t record, std::int32_t label, int classes) {
  return file + ": record " + std::to_string(record) + ", byte offset " +
         std::to_string(kLabelHeaderBytes + record) + ": label " + std::to_string(label) +
         " is out of range, there are " + std::to_string(classes) + " classes (0 to " +
         std::to_string(classes - 1) + ")";
}

// Refuses or marks labels out of range.
base::Status check_labels(const std::string& file, const IdxOptions& options, Dataset& data) {
  std::int64_t record = 0;
  for (std::int32_t& label : data.labels) {
    if (label >= data.num_classes) {
      const std::string text = bad_label_text(file, record, label, data.num_classes);
      if (options.bad_record_action == contract::BadRecordAction::kFail) {
        return Error{ErrorCode::kCorruptData, text + ": correct the file or model.options.numClasses"};
      }
      if (++data.skipped > options.max_skipped) {
        return Error{ErrorCode::kCorruptData,
                     text + ": " + std::to_string(data.skipped) +
                         " bad records, more than dataset.onBadRecord.maxSkipped = " +
                         std::to_string(options.max_skipped)};
      }
      data.bad.emplace(record, text);
      label = kSkippedLabel;
    }
    ++record;
  }
  return {};
}

int classes_of(const std::vector<std::int32_t>& labels) {
  return labels.empty() ? 0 : *std::max_element(labels.begin(), labels.end()) + 1;
}

}  // namespace

Result<Dataset> read_idx(base::Files& files, const std::string& folder, const std::string& split,
                         const IdxOptions& options) {
  if (!files.exists(folder)) {
    return Error{ErrorCode::kNotFound,
                 "the data set folder " + folder + " does not exist: check dataset.path and dataset.volume"};
  }
  const std::string prefix = file_prefix(split);
  EVENKEEL_ASSIGN(IdxContent label_file,
                  read_content(files, folder, prefix + "-labels-idx1-ubyte", options.max_bytes));
  EVENKEEL_ASSIGN(IdxContent image_file,
                  read_content(files, folder, prefix + "-images-idx3-ubyte", options.max_bytes));
  EVENKEEL_ASSIGN(auto labels, parse_idx_labels(label_file.bytes, label_file.file, options.max_bytes));
  EVENKEEL_ASSIGN(Dataset data,
                  parse_idx_images(std::move(image_file.bytes), image_file.file, options.max_bytes));
  if (labels.size() != static_cast<std::size_t>(data.samples)) {
    return Error{ErrorCode::kCorruptData, image_file.file + " has " + std::to_string(data.samples) +
                                              " images but " + label_file.file + " has " +
                                              std::to_string(labels.size()) +
                                              " labels: the two files do not belong together"};
  }
  data.name = split;
  data.origins = {{label_file.file, 0, kLabelHeaderBytes, 1}};
  data.labels = std::move(labels);
  data.num_classes = options.num_classes > 0 ? options.num_classes : classes_of(data.labels);
  EVENKEEL_TRY(check_labels(label_file.file, options, data));
  return data;
}

}  // namespace evenkeel::trainer
