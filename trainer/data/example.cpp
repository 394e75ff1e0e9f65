#include "trainer/data/example.h"

#include <optional>
#include <string>

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

Error bad_example(const std::string& what) {
  return Error{ErrorCode::kCorruptData, "tf.train.Example: " + what};
}

enum Wire : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// One field of a message: its number, and what it holds.
struct WireField {
  std::uint32_t number = 0;
  std::uint32_t wire = 0;
  std::uint64_t value = 0;   // kVarint
  std::string_view content;  // kBytes
};

// Takes a message apart, field by field.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : left_(bytes) {}

  bool at_end() const { return left_.empty(); }

  Result<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (left_.empty()) return bad_example("truncated inside a number");
      const auto byte = static_cast<std::uint8_t>(left_.front());
      left_.remove_prefix(1);
      if (shift == 63 && byte > 1) break;
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    return bad_example("a number has more than 64 bits");
  }

  Result<WireField> next() {
    EVENKEEL_ASSIGN(const std::uint64_t tag, varint());
    if (tag > 0xffffffffU || tag >> 3 == 0) return bad_example("field number " + std::to_string(tag >> 3));
    WireField field;
    field.number = static_cast<std::uint32_t>(tag >> 3);
    field.wire = static_cast<std::uint32_t>(tag & 7);
    if (field.wire == kVarint) {
      EVENKEEL_ASSIGN(field.value, varint());
      return field;
    }
    std::uint64_t length = 0;
    if (field.wire == kBytes) {
      EVENKEEL_ASSIGN(length, varint());
    } else if (field.wire == kFixed64 || field.wire == kFixed32) {
      length = field.wire == kFixed64 ? 8 : 4;
    } else {
      return bad_example("wire type " + std::to_string(field.wire));
    }
    if (length > left_.size()) {
      return bad_example("truncated: a field announces " + std::to_string(length) + " bytes, " +
                     std::to_string(left_.size()) + " are left");
    }
    field.content = left_.substr(0, static_cast<std::size_t>(length));
    left_.remove_prefix(static_cast<std::size_t>(length));
    return field;
  }

 private:
  std::string_view left_;
};

// The values of one key; of each kind only how many there are, and the last one.
struct Feature {
  std::uint64_t byte_values = 0;
  std::uint64_t float_values = 0;
  std::uint64_t integer_values = 0;
  std::string_view bytes;
  std::int64_t integer = 0;
};

base::Status read_integers(std::string_view list, Feature& feature) {
  WireReader reader(list);
  while (!reader.at_end()) {
    EVENKEEL_ASSIGN(const WireField field, reader.next());
    if (field.number != 1) continue;
    if (field.wire == kVarint) {
      feature.integer = static_cast<std::int64_t>(field.value);
      ++feature.integer_values;
    } else if (field.wire == kBytes) {  // packed
      WireReader packed(field.content);
      for (; !packed.at_end(); ++feature.integer_values) {
        EVENKEEL_ASSIGN(const std::uint64_t value, packed.varint());
        feature.integer = static_cast<std::int64_t>(value);
      }
    } else {
      return bad_example("an integer has wire type " + std::to_string(field.wire));
    }
  }
  return {};
}

base::Status read_byte_strings(std::string_view list, Feature& feature) {
  WireReader reader(list);
  while (!reader.at_end()) {
    EVENKEEL_ASSIGN(const WireField field, reader.next());
    if (field.number != 1) continue;
    if (field.wire != kBytes) return bad_example("a byte string has wire type " + std::to_string(field.wire));
    feature.bytes = field.content;
    ++feature.byte_values;
  }
  return {};
}

Result<Feature> read_feature(std::string_view message) {
  Feature feature;
  WireReader reader(message);
  while (!reader.at_end()) {
    EVENKEEL_ASSIGN(const WireField field, reader.next());
    if (field.wire != kBytes) continue;
    if (field.number == 1) EVENKEEL_TRY(read_byte_strings(field.content, feature));
    if (field.number == 2) feature.float_values += field.content.size() / 4;
    if (field.number == 3) EVENKEEL_TRY(read_integers(field.content, feature));
  }
  return feature;
}

// The four keys that matter.
struct Found {
  std::optional<Feature> encoded;      // image/encoded
  std::optional<Feature> image;        // image
  std::optional<Feature> class_label;  // image/class/label
  std::optional<Feature> label;        // label
};

// An entry of the map. The last of equal keys wins, as in protobuf.
base::Status read_entry(std::string_view entry, Found& found) {
  std::string_view key, value;
  WireReader reader(entry);
  while (!reader.at_end()) {
    EVENKEEL_ASSIGN(const WireField field, reader.next());
    if (field.wire != kBytes) continue;
    if (field.number == 1) key = field.content;
    if (field.number == 2) value = field.content;
  }
  std::optional<Feature>* const slot = key == "image/encoded"       ? &found.encoded
                                       : key == "image"             ? &found.image
                                       : key == "image/class/label" ? &found.class_label
                                       : key == "label"             ? &found.label
                                                                    : nullptr;
  if (slot == nullptr) return {};
  EVENKEEL_ASSIGN(*slot, read_feature(value));
  return {};
}

Result<Found> read_features(std::string_view record) {
  Found found;
  WireReader example(record);
  while (!example.at_end()) {
    EVENKEEL_ASSIGN(const WireField features, example.next());
    if (features.number != 1 || features.wire != kBytes) continue;
    WireReader map(features.content);
    while (!map.at_end()) {
      EVENKEEL_ASSIGN(const WireField entry, map.next());
      if (entry.number == 1 && entry.wire == kBytes) EVENKEEL_TRY(read_entry(entry.content, found));
    }
  }
  return found;
}

// What the key holds instead of the one value that is wanted; empty = exactly that.
std::string instead(const Feature& feature, bool want_bytes) {
  const std::uint64_t right = want_bytes ? feature.byte_values : feature.integer_values;
  const std::uint64_t wrong = want_bytes ? feature.integer_values : feature.byte_values;
  if (right == 1) return "";
  if (right > 1) return std::to_string(right) + " values";
  if (feature.float_values > 0) return "floats";
  if (wrong > 0) return want_bytes ? "integers" : "byte strings";
  return "no value";
}

}  // namespace

Result<ExampleFields> parse_example(std::string_view record) {
  EVENKEEL_ASSIGN(const Found found, read_features(record));
  const auto& image = found.encoded ? found.encoded : found.image;
  const auto& label = found.class_label ? found.class_label : found.label;
  if (!image) return bad_example("neither image/encoded nor image is there");
  if (!label) return bad_example("neither image/class/label nor label is there");
  if (const std::string other = instead(*image, true); !other.empty()) {
    return bad_example(std::string(found.encoded ? "image/encoded" : "image") + " holds " + other +
                   " instead of one byte string");
  }
  if (const std::string other = instead(*label, false); !other.empty()) {
    return bad_example(std::string(found.class_label ? "image/class/label" : "label") + " holds " + other +
                   " instead of one integer");
  }
  return ExampleFields{image->bytes, label->integer};
}

}  // namespace evenkeel::trainer
