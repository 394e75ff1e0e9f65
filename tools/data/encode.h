// The byte formats of images and records, each written from its specification. Used by sets.h; values, no
// thread rules. Written apart from the trainer's readers, so that the two check each other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tools/data/picture.h"

namespace evenkeel::data_tool {

// kInternal with the library's reason.
base::Result<std::string> encode_jpeg(const Picture& picture, int quality);
base::Result<std::string> encode_png(const Picture& picture);

// One entry of tf.train.Example: a list of byte strings or of integers.
struct Feature {
  std::string name;
  std::vector<std::string> bytes;
  std::vector<std::int64_t> integers;
};
// Integers packed, entries in the order given.
std::string encode_example(const std::vector<Feature>& features);
// Length, masked CRC of the length, data, masked CRC of the data.
std::string encode_tfrecord(std::string_view data);

// A file in a ustar archive: header, content, zeros up to 512. REQUIRES: name of at most 99 bytes.
std::string encode_tar_entry(std::string_view name, std::string_view content);
// What closes an archive.
std::string tar_end();

// Header of an IDX file of bytes.
std::string idx_header(const std::vector<std::uint32_t>& sizes);
// One record of CIFAR-10: label, then the planes red, green, blue. REQUIRES: 32 x 32 x 3.
std::string encode_cifar10(const Picture& picture, int label);

}  // namespace evenkeel::data_tool
