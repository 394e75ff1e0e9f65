// Tensors in a file: 8 bytes of header length, a JSON header (name -> dtype, shape, data_offsets), the data.
// Strict on reading: everything that a header claims is checked against the file before memory is taken for
// it. Used by checkpoint.h; other programs read the same files. No thread rules.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/result.h"

namespace evenkeel::trainer {

inline constexpr std::size_t kMaxTensors = 100'000;

// A tensor in somebody's memory: written from there, or read into it. fp32.
struct TensorView {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<float> values;  // size = product of the shape
};

struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // "F32"
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  // bytes from the start of the data
  std::uint64_t end = 0;
};

// What stands in front of the data: length and padded JSON. Entries: in the order of the data.
std::string safetensors_header(const std::vector<SafetensorsEntry>& entries);
std::string safetensors_header(const std::vector<TensorView>& tensors);

struct SafetensorsIndex {
  std::uint64_t data_offset = 0;          // of the data in the file
  std::vector<SafetensorsEntry> entries;  // in the order of the data
};

// kCorruptData: a header beyond 8 MiB or the file, JSON that is none or too deep, a name twice, an unknown
// dtype, a shape that overflows or does not give the entry's length, entries that leave a gap, overlap or do
// not end with the file.
base::Result<SafetensorsIndex> read_safetensors_index(base::Files& files, const std::string& path);
// The same on the bytes alone, for tests and fuzzing. `header`: the JSON; `data_bytes`: what follows it in
// the file.
base::Result<SafetensorsIndex> parse_safetensors_header(std::string_view header, std::uint64_t data_bytes);

// "(3, 64)": shapes as every message writes them.
std::string shape_text(const std::vector<std::int64_t>& shape);

// Fills `target` from its entry, which has its size.
base::Status read_tensor(base::Files& files, const std::string& path, const SafetensorsIndex& index,
                         const SafetensorsEntry& entry, const TensorView& target);

// Fills every target from the file. A tensor that the file lacks, has with another shape or dtype, or has
// beyond the targets: kMismatch with the name.
base::Status read_safetensors(base::Files& files, const std::string& path,
                              const std::vector<TensorView>& targets);

}  // namespace evenkeel::trainer
