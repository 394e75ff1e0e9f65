// What the formats with many records in a file share: an index of (file, offset, length), where a record is,
// and the files of a split by name. Made by the formats (tfrecord_split.cpp, webdataset_split.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "trainer/data/split.h"

namespace evenkeel::trainer {

// The most that one record may announce; more is taken for damage.
inline constexpr std::uint64_t kMaxRecordBytes = std::uint64_t{256} << 20;

struct RecordPlace {
  std::uint32_t file = 0;    // in the list of files
  std::uint32_t length = 0;  // of what is read; at most kMaxRecordBytes
  std::uint64_t offset = 0;  // where the record starts in its file
};

class IndexedSplit : public Split {
 public:
  std::uint64_t resident_bytes() const override;
  std::string where(std::int64_t id) const override;
  std::vector<std::int64_t> file_samples() const override;
  bool storage_answers(std::int64_t id) const override;

 protected:
  IndexedSplit(base::Files& files, std::string name, const std::vector<int>& image_size, int num_classes);

  // Records of the file that was added last follow.
  void add_file(std::string path);
  void add_record(std::uint64_t offset, std::uint32_t length);
  // One that cannot be read, whatever its length.
  void add_bad_record(std::uint64_t offset, const std::string& cause);
  // The error of a record that was bad from the start.
  base::Error known_error(std::int64_t id) const;
  bool is_known_bad(std::int64_t id) const { return known_bad_.count(id) != 0; }
  void set_samples() { info_.samples = static_cast<std::int64_t>(records_.size()); }

  base::Files* files_;
  std::vector<std::string> paths_;
  std::vector<std::int64_t> first_;  // id of the first record of each file
  std::vector<RecordPlace> records_;
};

// "label 7 is out of range, there are 5 classes (0 to 4)".
std::string label_out_of_range(std::int64_t label, int num_classes);

// Whether `name` has `split` in it as a word of its own: between ends, or anything but letters and digits.
bool has_word(const std::string& name, const std::string& split);

// Of names like "train.tfrecord-00002-of-00004": kNotFound names the first one of such a set that is missing.
base::Status check_complete(const std::vector<std::string>& names, const std::string& folder);

}  // namespace evenkeel::trainer
