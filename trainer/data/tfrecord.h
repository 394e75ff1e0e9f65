// The framing of TFRecord files: u64 length (little-endian), masked CRC-32C of the length, data, masked
// CRC-32C of the data. Pure but for the file that is read; called by tfrecord_split.cpp and tests.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trainer/data/file_window.h"

namespace evenkeel::trainer {

inline constexpr std::size_t kTfrecordHeaderBytes = 12;
inline constexpr std::size_t kTfrecordFooterBytes = 4;

// The CRC as TFRecord stores it.
std::uint32_t masked_crc32c(std::string_view bytes);
// A whole record with its framing: for tools and tests.
std::string frame_tfrecord(std::string_view data);

struct TfrecordEntry {
  std::uint64_t offset = 0;  // of the framing
  std::uint64_t length = 0;  // of the data
  std::string cause;         // not empty: the record is bad
};

// Walks over the frames without reading their data. A last record that is cut short, or one above max_bytes,
// is an entry with a cause. Error kCorruptData: a length does not match its checksum, so that nothing behind
// it can be found; `path` is for messages.
base::Status walk_tfrecord(FileWindow& file, const std::string& path, std::uint64_t max_bytes,
                           const std::function<void(TfrecordEntry)>& on_entry);

// Empty: `record` = data and footer match. Else the cause.
std::string tfrecord_data_fault(std::string_view record);

}  // namespace evenkeel::trainer
