#include "trainer/data/tfrecord.h"

#include <array>
#include <cstdio>

#include "base/hash.h"

namespace evenkeel::trainer {
namespace {

template <class Number>
Number little_endian(std::string_view bytes) {
  Number value = 0;
  for (std::size_t i = sizeof(Number); i-- > 0;) {
    value = static_cast<Number>(value << 8 | static_cast<std::uint8_t>(bytes[i]));
  }
  return value;
}

template <class Number>
void append(Number value, std::string& out) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

std::string mismatch(const char* what, std::uint32_t stored, std::uint32_t computed) {
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "%s CRC mismatch: stored %08x, computed %08x", what, stored,
                computed);
  return text.data();
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  const std::uint32_t crc = base::crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

std::string frame_tfrecord(std::string_view data) {
  std::string out;
  append(static_cast<std::uint64_t>(data.size()), out);
  append(masked_crc32c(out), out);
  out += data;
  append(masked_crc32c(data), out);
  return out;
}

base::Status walk_tfrecord(FileWindow& file, const std::string& path, std::uint64_t max_bytes,
                           const std::function<void(TfrecordEntry)>& on_entry) {
  std::uint64_t at = 0;
  for (std::uint64_t record = 0; at < file.size(); ++record) {
    const std::uint64_t left = file.size() - at;
    if (left < kTfrecordHeaderBytes) {
      on_entry({at, 0,
                "truncated: the file ends at byte " + std::to_string(file.size()) +
                    ", inside the length of the record"});
      return {};
    }
    EVENKEEL_ASSIGN(const std::string_view header, file.view(at, kTfrecordHeaderBytes));
    const auto length = little_endian<std::uint64_t>(header.substr(0, 8));
    const auto stored = little_endian<std::uint32_t>(header.substr(8, 4));
    const std::uint32_t computed = masked_crc32c(header.substr(0, 8));
    if (stored != computed) {
      return base::Error{base::ErrorCode::kCorruptData,
                         path + ": record " + std::to_string(record) + ", byte offset " + std::to_string(at) +
                             ": " + mismatch("length", stored, computed) +
                             ": what follows in the file cannot be found; fetch the file again"};
    }
    constexpr std::uint64_t kFraming = kTfrecordHeaderBytes + kTfrecordFooterBytes;
    if (length > left || left - length < kFraming) {
      on_entry({at, 0,
                "truncated: the record announces " + std::to_string(length) +
                    " bytes, but the file ends at byte " + std::to_string(file.size())});
      return {};
    }
    std::string cause;
    if (length > max_bytes) {
      cause = "the record announces " + std::to_string(length) + " bytes, above the limit of " +
              std::to_string(max_bytes);
    }
    on_entry({at, length, std::move(cause)});
    at += kFraming + length;
  }
  return {};
}

std::string tfrecord_data_fault(std::string_view record) {
  if (record.size() < kTfrecordFooterBytes) return "truncated";
  const std::string_view data = record.substr(0, record.size() - kTfrecordFooterBytes);
  const auto stored = little_endian<std::uint32_t>(record.substr(data.size()));
  const std::uint32_t computed = masked_crc32c(data);
  return stored == computed ? "" : mismatch("data", stored, computed);
}

}  // namespace evenkeel::trainer
