#include "trainer/checkpoint/safetensors.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <map>
#include <optional>

#include "base/json.h"
#include "base/json_reader.h"
#include "contract/checkpoint_format.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;
using base::Status;

constexpr std::size_t kLengthBytes = 8;
constexpr char kMetadata[] = "__metadata__";
constexpr int kMaxDims = 16;

Error corrupt(const std::string& message) {
  return {ErrorCode::kCorruptData, "safetensors: " + message};
}

// The widths that the format knows.
std::optional<std::uint64_t> width_of(std::string_view dtype) {
  static const std::map<std::string_view, std::uint64_t> widths{
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"I16", 2}, {"U16", 2}, {"F16", 2}, {"BF16", 2},
      {"I32", 4},  {"U32", 4}, {"F32", 4}, {"F64", 8}, {"I64", 8}, {"U64", 8}};
  const auto found = widths.find(dtype);
  if (found == widths.end()) return std::nullopt;
  return found->second;
}

// Bytes of the tensor, or nothing where the product leaves 64 bits.
std::optional<std::uint64_t> bytes_of(const std::vector<std::int64_t>& shape, std::uint64_t width) {
  std::uint64_t bytes = width;
  for (const std::int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dim), &bytes))
      return std::nullopt;
  }
  return bytes;
}

std::optional<std::uint64_t> natural(const Json& value) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  return std::nullopt;
}

Result<SafetensorsEntry> parse_entry(const std::string& name, const Json& value) {
  const std::string where = "tensor \"" + name.substr(0, 200) + "\"";
  if (name.empty()) return corrupt("a tensor without a name");
  if (!value.is_object() || value.size() != 3)
    return corrupt(where + " needs dtype, shape and data_offsets, no more");
  SafetensorsEntry entry;
  entry.name = name;
  entry.dtype = base::string_at(value, "dtype");
  const auto width = width_of(entry.dtype);
  if (!width) return corrupt(where + ": unknown dtype \"" + entry.dtype.substr(0, 20) + "\"");

  const Json& shape = base::child(value, "shape");
  if (!shape.is_array() || shape.size() > kMaxDims)
    return corrupt(where + ": shape is no list of at most 16 numbers");
  for (const Json& dim : shape) {
    const auto number = natural(dim);
    if (!number || *number > (std::uint64_t{1} << 62))
      return corrupt(where + ": a dimension is no natural number");
    entry.shape.push_back(static_cast<std::int64_t>(*number));
  }
  const Json& offsets = base::child(value, "data_offsets");
  if (!offsets.is_array() || offsets.size() != 2 || !natural(offsets[0]) || !natural(offsets[1])) {
    return corrupt(where + ": data_offsets is no pair of natural numbers");
  }
  entry.begin = *natural(offsets[0]);
  entry.end = *natural(offsets[1]);
  const auto bytes = bytes_of(entry.shape, *width);
  if (!bytes || entry.end < entry.begin || entry.end - entry.begin != *bytes) {
    return corrupt(where + ": shape " + shape_text(entry.shape) + " of " + entry.dtype +
                   " does not take the bytes from " + std::to_string(entry.begin) + " to " +
                   std::to_string(entry.end));
  }
  return entry;
}

// Every byte of the data belongs to exactly one tensor.
Status check_tiling(const std::vector<SafetensorsEntry>& entries, std::uint64_t data_bytes) {
  std::uint64_t at = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != at) {
      return corrupt("tensor \"" + entry.name + "\" begins at " + std::to_string(entry.begin) +
                     ", expected " + std::to_string(at) + ": the tensors leave a gap or overlap");
    }
    at = entry.end;
  }
  if (at == data_bytes) return {};
  return corrupt("the tensors take " + std::to_string(at) + " bytes, the file has " +
                 std::to_string(data_bytes) + (at > data_bytes ? ": truncated" : ""));
}

}  // namespace

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t dim : shape) text += (text.empty() ? "" : ", ") + std::to_string(dim);
  return "(" + text + ")";
}

std::string safetensors_header(const std::vector<SafetensorsEntry>& entries) {
  Json header = Json::object();
  // Appended, not inserted: the ordered object would look for each name from the front.
  auto& members = static_cast<Json::object_t::Container&>(header.get_ref<Json::object_t&>());
  for (const SafetensorsEntry& entry : entries) {
    members.emplace_back(
        entry.name,
        Json{{"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}});
  }
  std::string text = base::dump_json(header);
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');  // the data begin aligned
  std::string length(kLengthBytes, '\0');
  for (std::size_t i = 0; i < kLengthBytes; ++i) length[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  return length + text;
}

std::string safetensors_header(const std::vector<TensorView>& tensors) {
  std::vector<SafetensorsEntry> entries;
  std::uint64_t at = 0;
  for (const TensorView& tensor : tensors) {
    entries.push_back({tensor.name, "F32", tensor.shape, at, at + tensor.values.size_bytes()});
    at = entries.back().end;
  }
  return safetensors_header(entries);
}

Result<SafetensorsIndex> parse_safetensors_header(std::string_view header, std::uint64_t data_bytes) {
  Result<Json> json = base::parse_json(header, {contract::kMaxSafetensorsHeaderBytes, 16});
  if (!json.ok()) return corrupt("header: " + json.error().message);
  if (!json->is_object()) return corrupt("header is no JSON object");
  if (json->size() > kMaxTensors) return corrupt("more than " + std::to_string(kMaxTensors) + " tensors");
  SafetensorsIndex index;
  for (const auto& [name, value] : json->items()) {
    if (name == kMetadata) continue;
    EVENKEEL_ASSIGN(SafetensorsEntry entry, parse_entry(name, value));
    index.entries.push_back(std::move(entry));
  }
  std::stable_sort(index.entries.begin(), index.entries.end(), [](const auto& a, const auto& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  EVENKEEL_TRY(check_tiling(index.entries, data_bytes));
  index.data_offset = kLengthBytes + header.size();
  return index;
}

Result<SafetensorsIndex> read_safetensors_index(base::Files& files, const std::string& path) {
  EVENKEEL_ASSIGN(const std::uint64_t size, files.size(path));
  EVENKEEL_ASSIGN(const std::string length_bytes, files.read_range(path, 0, kLengthBytes));
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length |= static_cast<std::uint64_t>(static_cast<unsigned char>(length_bytes[i])) << (8 * i);
  }
  if (length > contract::kMaxSafetensorsHeaderBytes || length > size - kLengthBytes) {
    return base::with_context(path, corrupt("a header of " + std::to_string(length) + " bytes in a file of " +
                                            std::to_string(size) + "; at most 8 MiB and the file's length"));
  }
  EVENKEEL_ASSIGN(const std::string header,
                  files.read_range(path, kLengthBytes, static_cast<std::size_t>(length)));
  Result<SafetensorsIndex> index = parse_safetensors_header(header, size - kLengthBytes - length);
  if (!index.ok()) return base::with_context(path, std::move(index).error());
  return index;
}

Status read_tensor(base::Files& files, const std::string& path, const SafetensorsIndex& index,
                   const SafetensorsEntry& entry, const TensorView& target) {
  assert(entry.end - entry.begin == target.values.size_bytes());
  // In pieces: a tensor of a gigabyte is not in memory twice.
  constexpr std::uint64_t kPieceBytes = std::uint64_t{16} << 20;
  auto* out = reinterpret_cast<char*>(target.values.data());
  for (std::uint64_t at = entry.begin; at < entry.end; at += kPieceBytes) {
    const auto bytes = static_cast<std::size_t>(std::min(kPieceBytes, entry.end - at));
    EVENKEEL_ASSIGN(const std::string piece, files.read_range(path, index.data_offset + at, bytes));
    std::memcpy(out + (at - entry.begin), piece.data(), piece.size());
  }
  return {};
}

Status read_safetensors(base::Files& files, const std::string& path, const std::vector<TensorView>& targets) {
  EVENKEEL_ASSIGN(const SafetensorsIndex index, read_safetensors_index(files, path));
  std::map<std::string_view, const SafetensorsEntry*> by_name;
  for (const SafetensorsEntry& entry : index.entries) by_name[entry.name] = &entry;
  const auto differs = [&](const std::string& what) {
    return Error{ErrorCode::kMismatch, path + ": " + what};
  };
  // All names and shapes first: either everything is loaded or nothing.
  for (const TensorView& target : targets) {
    const auto found = by_name.find(target.name);
    if (found == by_name.end())
      return differs("tensor \"" + target.name + "\" of the model is not in the file");
    const SafetensorsEntry& entry = *found->second;
    if (entry.dtype != "F32" || entry.shape != target.shape) {
      return differs("tensor \"" + target.name + "\" is " + entry.dtype + " " + shape_text(entry.shape) +
                     " in the file, F32 " + shape_text(target.shape) + " in the model");
    }
  }
  if (by_name.size() != targets.size()) {
    for (const TensorView& target : targets) by_name.erase(target.name);
    if (by_name.empty()) return differs("the model has two tensors of one name");
    return differs("tensor \"" + std::string(by_name.begin()->first) + "\" is not in the model");
  }
  for (const TensorView& target : targets) {
    EVENKEEL_TRY(read_tensor(files, path, index, *by_name[target.name], target));
  }
  return {};
}

}  // namespace evenkeel::trainer
