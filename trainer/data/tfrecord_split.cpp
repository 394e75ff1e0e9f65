// Format tfrecord: files of the split by name, an index of their frames, one tf.train.Example a record. Files that are
// compressed as a whole (.gz) are decompressed to reach a record: the last ones stay in memory, so that whoever reads
// file by file decompresses each once an epoch.
#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>

#include "trainer/data/example.h"
#include "trainer/data/format.h"
#include "trainer/data/gunzip.h"
#include "trainer/data/indexed_split.h"
#include "trainer/data/tfrecord.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

// A share may end in one file and begin in the next, and the share after it is read at the same time.
constexpr std::size_t kFilesInMemory = 2;
constexpr std::uint64_t kMaxPackedBytes = std::uint64_t{1} << 30, kMaxUnpackedBytes = std::uint64_t{2} << 30;

bool is_packed(const std::string& path) { return path.ends_with(".gz"); }

class TfrecordSplit : public IndexedSplit {
 public:
  TfrecordSplit(const FormatRequest& request)
      : IndexedSplit(request.files, request.split, request.spec.image_size, request.num_classes) {}

  Status index(const std::string& path) {
    EVENKEEL_ASSIGN(FileWindow window, open(path));
    add_file(path);
    largest_unpacked_ = std::max(largest_unpacked_, is_packed(path) ? window.size() : 0);
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
    auto bytes = stored_bytes(place);
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

  std::string sequential_because() const override {
    return std::any_of(paths_.begin(), paths_.end(), is_packed) ? "files are compressed" : "";
  }
  std::uint64_t resident_bytes() const override {
    return IndexedSplit::resident_bytes() + kFilesInMemory * largest_unpacked_;
  }

 private:
  struct Unpacked {
    std::uint32_t file = 0;
    std::shared_ptr<const std::string> content;
  };

  Result<std::string> unpack(const std::string& path) const {
    EVENKEEL_ASSIGN(const std::string packed, files_->read(path, kMaxPackedBytes));
    return gunzip(packed, path, kMaxUnpackedBytes);
  }

  Result<FileWindow> open(const std::string& path) const {
    if (is_packed(path)) {
      EVENKEEL_ASSIGN(std::string content, unpack(path));
      return FileWindow(std::move(content));
    }
    EVENKEEL_ASSIGN(const std::uint64_t size, files_->size(path));
    return FileWindow(*files_, path, size);
  }

  // Data and footer of a record.
  Result<std::string> stored_bytes(const RecordPlace& place) const {
    const std::uint64_t offset = place.offset + kTfrecordHeaderBytes;
    const std::size_t length = place.length + kTfrecordFooterBytes;
    if (!is_packed(paths_[place.file])) return files_->read_range(paths_[place.file], offset, length);
    EVENKEEL_ASSIGN(const auto content, unpacked(place.file));
    if (offset > content->size() || length > content->size() - offset)
      return Error{ErrorCode::kCorruptData, "truncated: the file has become shorter"};
    return content->substr(offset, length);
  }

  // One thread decompresses, the others wait for it: they want the same file.
  Result<std::shared_ptr<const std::string>> unpacked(std::uint32_t file) const {
    const std::lock_guard lock(mutex_);
    for (const Unpacked& one : unpacked_) {
      if (one.file == file) return one.content;
    }
    EVENKEEL_ASSIGN(std::string content, unpack(paths_[file]));
    auto shared = std::make_shared<const std::string>(std::move(content));
    if (unpacked_.size() == kFilesInMemory) unpacked_.pop_front();
    unpacked_.push_back({file, shared});
    return shared;
  }

  std::uint64_t largest_unpacked_ = 0;
  mutable std::mutex mutex_;
  mutable std::deque<Unpacked> unpacked_;  // the last one was made last
};

// In a way that is not known here.
bool is_compressed(const std::string& name) {
  return name.ends_with(".zlib") || name.ends_with(".bz2") || name.ends_with(".zst");
}

// Others in the folder, features.json or train.txt, are not meant.
bool looks_like_records(const std::string& name, const std::string& split) {
  return name == split || name.find("tfrecord") != std::string::npos ||
         name.find("-of-") != std::string::npos;
}

Result<std::vector<std::string>> record_files(const FormatRequest& request) {
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
                       " is compressed in a way that is not read here: use gzip, or decompress it (JPEG "
                       "records hardly shrink)"};
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
  EVENKEEL_ASSIGN(const std::vector<std::string> names, record_files(request));
  EVENKEEL_TRY(check_complete(names, request.spec.path));
  auto split = std::make_unique<TfrecordSplit>(request);
  for (const std::string& name : names) EVENKEEL_TRY(split->index(request.spec.path + "/" + name));
  return std::unique_ptr<Split>(std::move(split));
}

}  // namespace evenkeel::trainer
