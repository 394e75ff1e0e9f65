// The IDX form itself: header, sizes, labels. Big-endian; 0x00000803 = unsigned bytes in 3 dimensions
// (images), 0x00000801 = in 1 (labels); dimensions x 1 byte must be exactly the rest of the file.
#include <array>
#include <cstdio>
#include <optional>

#include "trainer/data/idx_internal.h"
#include "trainer/data/idx_reader.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

constexpr std::uint32_t kImagesMagic = 0x803;
constexpr std::uint32_t kLabelsMagic = 0x801;
constexpr std::uint64_t kMaxItems = std::uint64_t{1} << 31;

Error corrupt(const std::string& file, std::uint64_t offset, const std::string& what) {
  return Error{ErrorCode::kCorruptData, file + ": at byte " + std::to_string(offset) + ": " + what};
}

std::string hex(std::uint32_t value) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%08x", value);
  return text.data();
}

std::uint32_t big_endian(std::string_view bytes, std::size_t offset) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint8_t>(bytes[offset + i]);
  return value;
}

struct Header {
  std::vector<std::int64_t> dims;
  std::uint64_t header_bytes = 0;
  std::uint64_t payload_bytes = 0;
};

base::Status check_magic(std::string_view bytes, const std::string& file, std::uint32_t expected) {
  if (bytes.empty()) return corrupt(file, 0, "the file is empty; fetch it again");
  if (bytes.size() < 4) {
    return corrupt(file, bytes.size(),
                   "truncated: the 4-byte magic number is cut short; fetch the file again");
  }
  const std::uint32_t magic = big_endian(bytes, 0);
  if (magic == expected) return {};
  const std::string swapped = (magic == kImagesMagic || magic == kLabelsMagic)
                                  ? "; images and labels seem to be exchanged"
                                  : "; this is no IDX file of this kind";
  return corrupt(file, 0, "magic number " + hex(magic) + " instead of " + hex(expected) + swapped);
}

// The dimensions, checked against the limits but not yet against the length of the file.
Result<Header> read_header(std::string_view bytes, const std::string& file, std::uint32_t magic,
                           std::uint64_t max_bytes) {
  EVENKEEL_TRY(check_magic(bytes, file, magic));
  Header header;
  const std::size_t dims = magic & 0xff;
  header.header_bytes = 4 + 4 * dims;
  header.payload_bytes = 1;
  for (std::size_t d = 0; d < dims; ++d) {
    const std::size_t offset = 4 + 4 * d;
    if (bytes.size() < offset + 4) {
      return corrupt(file, bytes.size(),
                     "truncated inside the header of " + std::to_string(header.header_bytes) +
                         " bytes; fetch the file again");
    }
    const std::uint64_t dim = big_endian(bytes, offset);
    const std::string name = "dimension " + std::to_string(d + 1) + " is " + std::to_string(dim);
    // No samples at all is for the caller to judge; an image without pixels is nonsense.
    if (dim == 0 && d > 0) return corrupt(file, offset, name + ": an image needs at least one pixel");
    if (dim > kMaxItems)
      return corrupt(file, offset, name + ", above the limit of " + std::to_string(kMaxItems));
    if (dim != 0 && header.payload_bytes > max_bytes / dim) {
      return corrupt(
          file, offset,
          name + ": the dimensions announce more than the limit of " + std::to_string(max_bytes) + " bytes");
    }
    header.payload_bytes *= dim;
    header.dims.push_back(static_cast<std::int64_t>(dim));
  }
  return header;
}

std::string dims_text(const Header& header) {
  std::string text;
  for (const std::int64_t dim : header.dims) text += (text.empty() ? "" : " x ") + std::to_string(dim);
  return text;
}

Result<Header> read_whole(std::string_view bytes, const std::string& file, std::uint32_t magic,
                          std::uint64_t max_bytes) {
  EVENKEEL_ASSIGN(Header header, read_header(bytes, file, magic, max_bytes));
  const std::uint64_t expected = header.header_bytes + header.payload_bytes;
  if (bytes.size() == expected) return header;
  const std::string sizes = "the header announces " + dims_text(header) + " = " + std::to_string(expected) +
                            " bytes with the header, but the file has " + std::to_string(bytes.size());
  if (bytes.size() > expected) {
    return corrupt(file, expected, "bytes behind the last record: " + sizes + "; fetch the file again");
  }
  const std::uint64_t record_bytes =
      header.dims[0] == 0 ? 1 : header.payload_bytes / static_cast<std::uint64_t>(header.dims[0]);
  const std::uint64_t record = (bytes.size() - header.header_bytes) / record_bytes;
  return corrupt(file, bytes.size(),
                 "truncated in record " + std::to_string(record) + ": " + sizes + "; fetch the file again");
}

}  // namespace

Result<Dataset> parse_idx_images(std::string bytes, const std::string& file, std::uint64_t max_bytes) {
  EVENKEEL_ASSIGN(const Header header, read_whole(bytes, file, kImagesMagic, max_bytes));
  Dataset data;
  data.samples = header.dims[0];
  data.sample_shape = {header.dims[1], header.dims[2]};
  data.image_offset = header.header_bytes;
  data.image_bytes = std::move(bytes);
  return data;
}

Result<std::vector<std::int32_t>> parse_idx_labels(std::string_view bytes, const std::string& file,
                                                   std::uint64_t max_bytes) {
  EVENKEEL_ASSIGN(const Header header, read_whole(bytes, file, kLabelsMagic, max_bytes));
  std::vector<std::int32_t> labels;
  labels.reserve(header.payload_bytes);
  for (const char c : bytes.substr(header.header_bytes)) labels.push_back(static_cast<std::uint8_t>(c));
  return labels;
}

namespace idx_internal {

// How many bytes the file has according to its header; for the decompressor, which must not trust its input.
Result<std::uint64_t> announced_bytes(std::string_view head, const std::string& file,
                                      std::uint64_t max_bytes) {
  EVENKEEL_TRY(head.size() < 4 ? check_magic(head, file, kImagesMagic) : base::Status{});
  const std::uint32_t magic = big_endian(head, 0) == kLabelsMagic ? kLabelsMagic : kImagesMagic;
  EVENKEEL_ASSIGN(const Header header, read_header(head, file, magic, max_bytes));
  return header.header_bytes + header.payload_bytes;
}

}  // namespace idx_internal
}  // namespace evenkeel::trainer
