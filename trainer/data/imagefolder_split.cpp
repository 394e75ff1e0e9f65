// Format imagefolder: <path>/<split>/<class>/<picture>. Classes are the directories, sorted by bytes;
// pictures
// *.jpg, *.jpeg, *.png, in any case, sorted by bytes inside their class.
#include <algorithm>
#include <cctype>

#include "base/log.h"
#include "trainer/data/format.h"
#include "trainer/data/indexed_split.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

bool is_picture(const std::string& name) {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return !name.starts_with(".") &&
         (lower.ends_with(".jpg") || lower.ends_with(".jpeg") || lower.ends_with(".png"));
}

class ImagefolderSplit : public Split {
 public:
  ImagefolderSplit(const FormatRequest& request)
      : files_(&request.files), folder_(request.spec.path + "/" + request.split) {
    info_ = {request.split, 0, {request.spec.image_size[0], request.spec.image_size[1], 3}, 0};
    form_ = RecordForm::kEncoded;
  }

  const std::vector<std::string>& classes() const { return classes_; }

  // `classes`: of the train split; null: the directories themselves are the classes.
  Status index(const std::vector<std::string>* classes) {
    EVENKEEL_ASSIGN(const auto entries, files_->list(folder_));
    std::vector<std::string> found;
    for (const base::DirEntry& entry : entries) {
      if (entry.is_directory && !entry.name.starts_with(".")) {
        found.push_back(entry.name);
      } else {
        ignore(entry.name);
      }
    }
    if (found.empty()) {
      return Error{ErrorCode::kNotFound,
                   folder_ + " has no class directory: pictures belong into " + folder_ + "/<class>/"};
    }
    classes_ = classes != nullptr ? *classes : found;
    for (const std::string& name : found) EVENKEEL_TRY(index_class(name));
    info_.samples = static_cast<std::int64_t>(pictures_.size());
    report_ignored();
    return {};
  }

  void set_classes(int num_classes) { info_.num_classes = num_classes; }

  std::uint64_t resident_bytes() const override {
    std::uint64_t bytes = pictures_.capacity() * sizeof(Picture);
    for (const Picture& picture : pictures_) bytes += picture.name.capacity();
    return bytes;
  }

  Result<StoredRecord> read(std::int64_t id) const override {
    auto bytes = files_->read(path_of(id), kMaxRecordBytes);
    if (!bytes.ok()) return too_long_is_corrupt(id, std::move(bytes).error());
    if (bytes->empty()) return corrupt(id, "the image is empty");
    StoredRecord record;
    record.label = pictures_[static_cast<std::size_t>(id)].label;
    record.stored_bytes = bytes->size();
    const std::size_t length = bytes->size();
    record.own(*std::move(bytes), 0, length);
    return record;
  }

  std::string where(std::int64_t id) const override {
    return path_of(id) + ": record " + std::to_string(id) + ", byte offset 0";
  }

  std::vector<std::int64_t> file_samples() const override { return {}; }
  bool storage_answers(std::int64_t) const override { return files_->list(folder_).ok(); }

 private:
  struct Picture {
    std::string name;
    std::int32_t label = 0;
  };

  std::string path_of(std::int64_t id) const {
    const Picture& picture = pictures_[static_cast<std::size_t>(id)];
    return folder_ + "/" + classes_[static_cast<std::size_t>(picture.label)] + "/" + picture.name;
  }

  Error too_long_is_corrupt(std::int64_t id, Error error) const {
    return error.code == ErrorCode::kInvalidInput ? corrupt(id, error.message) : error;
  }

  Status index_class(const std::string& name) {
    const auto place = std::find(classes_.begin(), classes_.end(), name);
    if (place == classes_.end()) {
      return Error{ErrorCode::kCorruptData, folder_ + "/" + name +
                                                " is a class that the training split does not have: nothing "
                                                "could ever be predicted right there"};
    }
    EVENKEEL_ASSIGN(const auto entries, files_->list(folder_ + "/" + name));
    for (const base::DirEntry& entry : entries) {
      if (!entry.is_directory && is_picture(entry.name)) {
        pictures_.push_back({entry.name, static_cast<std::int32_t>(place - classes_.begin())});
      } else {
        ignore(name + "/" + entry.name);
      }
    }
    return {};
  }

  void ignore(const std::string& name) {
    if (ignored_++ == 0) first_ignored_ = name;
  }

  void report_ignored() const {
    if (ignored_ == 0) return;
    base::log_warning("entries of the data set that are no pictures in a class directory are left out",
                      {{"folder", folder_}, {"count", ignored_}, {"first", first_ignored_}});
  }

  base::Files* files_;
  const std::string folder_;
  std::vector<std::string> classes_;
  std::vector<Picture> pictures_;
  std::int64_t ignored_ = 0;
  std::string first_ignored_;
};

}  // namespace

OpenedSplit open_imagefolder(const FormatRequest& request) {
  auto split = std::make_unique<ImagefolderSplit>(request);
  const auto* train = dynamic_cast<const ImagefolderSplit*>(request.train);
  EVENKEEL_TRY(split->index(train == nullptr ? nullptr : &train->classes()));
  const auto classes = static_cast<int>(split->classes().size());
  if (request.num_classes > 0 && request.num_classes < classes) {
    return Error{ErrorCode::kCorruptData,
                 request.spec.path + "/" + request.split + " has " + std::to_string(classes) +
                     " class directories, but the model has " + std::to_string(request.num_classes) +
                     " classes: correct model.options.numClasses"};
  }
  split->set_classes(request.num_classes > 0 ? request.num_classes : classes);
  return std::unique_ptr<Split>(std::move(split));
}

}  // namespace evenkeel::trainer
