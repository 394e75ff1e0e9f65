// Format tfrecord: files of the split by name, an index of their frames, one tf.train.Example a record.
#include "trainer/data/example.h"
#include "trainer/data/format.h"
#include "trainer/data/indexed_split.h"
#include "trainer/data/tfrecord.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

class TfrecordSplit : public IndexedSplit {
 public:
  TfrecordSplit(const FormatRequest& request)
      : IndexedSplit(request.files, request.split, request.spec.image_size, request.num_classes) {}

  Status index(const std::string& path) {
    EVENKEEL_ASSIGN(const std::uint64_t size, files_->size(path));
    FileWindow window(*files_, path, size);
    add_file(path);
    EVENKEEL_TRY(walk_tfrecord(window, path, kMaxRecordBytes, [this](TfrecordEntry entry) {
      if (entry.cause.empty()) {
        add_record(entry.offset, static_cast<std::uint32_t>(entry.length));
      } else {
        add_bad_record(entry.offset, entry.cause);
      }
    }));
    set_samples();
    return {};
  }

  Result<StoredRecord> read(std::int64_t id) const override {
    if (is_known_bad(id)) return known_error(id);
    const RecordPlace& place = records_[static_cast<std::size_t>(id)];
    auto bytes = files_->read_range(paths_[place.file], place.offset + kTfrecordHeaderBytes,
                                    place.length + kTfrecordFooterBytes);
    if (!bytes.ok()) {
      // A file that was longer when the index was made.
      return base::with_context(where(id), bytes.error());
    }
    if (const std::string fault = tfrecord_data_fault(*bytes); !fault.empty()) return corrupt(id, fault);
    const std::string_view data = std::string_view(*bytes).substr(0, place.length);
    const Result<ExampleFields> fields = parse_example(data);
    if (!fields.ok()) return base::with_context(where(id), fields.error());
    if (fields->label < 0 || fields->label >= info_.num_classes) {
      return corrupt(id, label_out_of_range(fields->label, info_.num_classes));
    }
    if (fields->image.empty()) return corrupt(id, "the image is empty");
    StoredRecord record;
    record.label = static_cast<std::int32_t>(fields->label);
    record.stored_bytes = place.length + kTfrecordHeaderBytes + kTfrecordFooterBytes;
    const auto offset = static_cast<std::size_t>(fields->image.data() - data.data());
    const std::size_t length = fields->image.size();
    record.own(*std::move(bytes), offset, length);
    return record;
  }
};

bool is_compressed(const std::string& name) {
  return name.ends_with(".gz") || name.ends_with(".zlib") || name.ends_with(".bz2") || name.ends_with(".zst");
}

// Others in the folder, features.json or train.txt, are not meant.
bool looks_like_records(const std::string& name, const std::string& split) {
  return name == split || name.find("tfrecord") != std::string::npos ||
         name.find("-of-") != std::string::npos;
}

Result<std::vector<std::string>> names_of(const FormatRequest& request) {
  const std::string& folder = request.spec.path;
  EVENKEEL_ASSIGN(const auto entries, request.files.list(folder));
  std::vector<std::string> names;
  for (const base::DirEntry& entry : entries) {
    const std::string& name = entry.name;
    if (entry.is_directory || name.starts_with(".") || !has_word(name, request.split) ||
        !looks_like_records(name, request.split))
      continue;
    if (is_compressed(name)) {
      return Error{ErrorCode::kUnsupported,
                   folder + "/" + name +
                       " is compressed, and its records cannot be reached one by one: "
                       "decompress it (JPEG records hardly shrink)"};
    }
    names.push_back(name);
  }
  if (!names.empty()) return names;
  return Error{ErrorCode::kNotFound,
               "no file of split " + request.split + " in " + folder + ", like " + request.split +
                   ".tfrecord or " + request.split +
                   "-00000-of-00004: check dataset.path and dataset.split, or mount the volume"};
}

}  // namespace

OpenedSplit open_tfrecord(const FormatRequest& request) {
  if (request.num_classes <= 0) {
    return Error{ErrorCode::kInvalidInput,
                 "dataset.format tfrecord does not say how many classes there are: set "
                 "model.options.numClasses"};
  }
  EVENKEEL_ASSIGN(const std::vector<std::string> names, names_of(request));
  EVENKEEL_TRY(check_complete(names, request.spec.path));
  auto split = std::make_unique<TfrecordSplit>(request);
  for (const std::string& name : names) EVENKEEL_TRY(split->index(request.spec.path + "/" + name));
  return std::unique_ptr<Split>(std::move(split));
}

}  // namespace evenkeel::trainer
