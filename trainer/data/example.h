// The part of tf.train.Example that pictures with labels need, read from its wire form: a map from names to
// lists of bytes, floats or integers. Pure; called for each record by tfrecord_split.cpp.
//
// Keys: the picture is image/encoded, else image: one JPEG or PNG file; the label is image/class/label, else
// label: one integer, packed or not.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace evenkeel::trainer {

struct ExampleFields {
  std::string_view image;  // inside the record
  std::int64_t label = 0;
};

// kCorruptData with the cause: damaged form, a key that is missing, or holds another kind or another number
// of values than one.
base::Result<ExampleFields> parse_example(std::string_view record);

}  // namespace evenkeel::trainer
