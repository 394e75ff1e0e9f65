// One split of a data set, whatever its format: numbered records that any number of threads may read at the
// same time. Made by open_dataset.h, read by batch.h. A split keeps an index and, for the small formats, the
// bytes; it is immutable.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trainer/data/image.h"

namespace evenkeel::trainer {

// Label of a record that was found bad and skipped by policy: it keeps its place in the order, takes part in
// no gradient and in no count.
inline constexpr std::int32_t kSkippedLabel = -1;

struct SplitInfo {
  std::string name;                        // for messages: "train"
  std::int64_t samples = 0;                // bad records included: they keep their place
  std::vector<std::int64_t> sample_shape;  // (H, W, C) of a training sample, always three
  int num_classes = 0;                     // labels are in [0, num_classes)
};

// What the bytes of a record are.
enum class RecordForm {
  kPixels,   // of the stored shape, in rows of interleaved channels
  kEncoded,  // a JPEG or PNG file; decodes to RGB
};

// One record as it is stored, verified as far as its container goes: checksums, structure, label in range.
class StoredRecord {
 public:
  std::int32_t label = 0;
  std::uint64_t stored_bytes = 0;  // with everything around the picture

  // `bytes` must outlive the record.
  void borrow(std::span<const std::uint8_t> bytes) {
    owned_.clear();
    borrowed_ = bytes;
  }
  // The picture is `length` bytes of `owner` from `offset` on.
  void own(std::string owner, std::size_t offset, std::size_t length) {
    owned_ = std::move(owner);
    offset_ = offset;
    length_ = length;
    borrowed_ = {};
  }
  std::span<const std::uint8_t> bytes() const {
    if (owned_.empty()) return borrowed_;
    return {reinterpret_cast<const std::uint8_t*>(owned_.data()) + offset_, length_};
  }

 private:
  std::string owned_;
  std::size_t offset_ = 0;
  std::size_t length_ = 0;
  std::span<const std::uint8_t> borrowed_;
};

struct DecodedRecord {
  Image image;  // of its own size; kEncoded: RGB
  std::int32_t label = 0;
};

class Split {
 public:
  virtual ~Split() = default;
  Split(const Split&) = delete;
  Split& operator=(const Split&) = delete;

  const SplitInfo& info() const { return info_; }
  RecordForm form() const { return form_; }
  // Of kPixels: (H, W, C) as stored, before image.size is applied.
  const std::vector<std::int64_t>& stored_shape() const { return stored_shape_; }
  // Memory that it holds for good: index and bytes.
  virtual std::uint64_t resident_bytes() const = 0;

  // Thread safe. A record that does not verify is kCorruptData and the message begins with where(id); other
  // codes mean that the storage failed. REQUIRES: 0 <= id < info().samples.
  virtual base::Result<StoredRecord> read(std::int64_t id) const = 0;
  // The same with the picture decoded at its full size.
  base::Result<DecodedRecord> decode(std::int64_t id) const;
  // "/data/train.tfrecord: record 4, byte offset 4160": the file, the number of the record in that file and
  // where it starts. A file that is one record has the number of the sample.
  virtual std::string where(std::int64_t id) const = 0;

  // Samples of each file, in the order of the ids; empty: every record is a file of its own.
  virtual std::vector<std::int64_t> file_samples() const { return {info_.samples}; }
  // Why a record can only be reached through those before it; empty: each can be read by itself.
  virtual std::string sequential_because() const { return ""; }
  // Whether the file of a record can be read at all, where the record cannot. Thread safe.
  virtual bool storage_answers(std::int64_t id) const;

  // Records that were found bad when the split was opened, with the whole message; read() of them fails
  // alike.
  const std::map<std::int64_t, std::string>& known_bad() const { return known_bad_; }

 protected:
  Split() = default;
  base::Error corrupt(std::int64_t id, const std::string& cause) const;

  SplitInfo info_;
  RecordForm form_ = RecordForm::kEncoded;
  std::vector<std::int64_t> stored_shape_;
  std::map<std::int64_t, std::string> known_bad_;
};

}  // namespace evenkeel::trainer
