#include "tools/data/encode.h"

#include <cassert>
#include <cstdio>

#include "base/hash.h"

namespace evenkeel::data_tool {
namespace {

void put_le(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>((value & 0x7f) | 0x80));
  out.push_back(static_cast<char>(value));
}

// A field of bytes: strings, messages and packed numbers alike (wire type 2).
void put_field(std::string& out, int number, std::string_view content) {
  put_varint(out, static_cast<std::uint64_t>(number) << 3 | 2);
  put_varint(out, content.size());
  out += content;
}

// Feature{bytes_list = 1 | float_list = 2 | int64_list = 3}, each a list with the one field value = 1.
std::string encode_feature(const Feature& feature) {
  std::string list;
  for (const std::string& value : feature.bytes) put_field(list, 1, value);
  if (!feature.integers.empty()) {
    std::string packed;
    for (const std::int64_t value : feature.integers) put_varint(packed, static_cast<std::uint64_t>(value));
    put_field(list, 1, packed);
  }
  std::string out;
  put_field(out, feature.integers.empty() ? 1 : 3, list);
  return out;
}

std::uint32_t masked_crc(std::string_view bytes) {
  const std::uint32_t crc = base::crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8;
}

std::string octal(std::uint64_t value, int digits) {
  std::string text(static_cast<std::size_t>(digits), '0');
  for (auto at = text.rbegin(); at != text.rend(); ++at, value >>= 3)
    *at = static_cast<char>('0' + (value & 7));
  return text;
}

}  // namespace

// Example{features = 1}, Features{map<string, Feature> feature = 1}: a map is a repeated entry {key = 1,
// value = 2}.
std::string encode_example(const std::vector<Feature>& features) {
  std::string map;
  for (const Feature& feature : features) {
    std::string entry;
    put_field(entry, 1, feature.name);
    put_field(entry, 2, encode_feature(feature));
    put_field(map, 1, entry);
  }
  std::string out;
  put_field(out, 1, map);
  return out;
}

std::string encode_tfrecord(std::string_view data) {
  std::string out;
  out.reserve(data.size() + 16);
  put_le(out, data.size(), 8);
  put_le(out, masked_crc(out), 4);
  out += data;
  put_le(out, masked_crc(data), 4);
  return out;
}

std::string encode_tar_entry(std::string_view name, std::string_view content) {
  assert(name.size() <= 99);
  constexpr std::size_t kBlock = 512;
  std::string header(kBlock, '\0');
  const auto put = [&header](std::size_t at, std::string_view text) {
    header.replace(at, text.size(), text);
  };
  put(0, name);
  put(100, octal(0644, 7));
  put(108, octal(0, 7));  // user and group: root
  put(116, octal(0, 7));
  put(124, octal(content.size(), 11));
  put(136, octal(0, 11));  // time: the archive depends on nothing but its content
  put(148, "        ");    // the checksum counts as blanks
  put(156, "0");           // a plain file
  put(257, std::string_view("ustar\00000", 8));
  std::uint64_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, octal(sum, 6));
  header[154] = '\0';
  header[155] = ' ';
  std::string out = header;
  out += content;
  out.append((kBlock - content.size() % kBlock) % kBlock, '\0');
  return out;
}

std::string tar_end() {
  return std::string(1024, '\0');
}

std::string idx_header(const std::vector<std::uint32_t>& sizes) {
  std::string out{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const std::uint32_t size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(size >> shift & 0xff));
  }
  return out;
}

std::string encode_cifar10(const Picture& picture, int label) {
  assert(picture.width == 32 && picture.height == 32 && picture.channels == 3);
  std::string out(1, static_cast<char>(label));
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (std::size_t at = channel; at < picture.pixels.size(); at += 3)
      out.push_back(static_cast<char>(picture.pixels[at]));
  }
  return out;
}

}  // namespace evenkeel::data_tool
