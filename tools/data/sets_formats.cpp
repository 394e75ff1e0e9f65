// Each format's files, folders and names.
#include <cstdarg>

#include "tools/data/sets_internal.h"

namespace evenkeel::data_tool::internal {
namespace {

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

base::Result<std::string> raw_pixels(const Sample& sample) {
  return std::string(sample.picture.pixels.begin(), sample.picture.pixels.end());
}

base::Result<std::string> as_jpeg(const Sample& sample) {
  return encode_jpeg(sample.picture, kJpegQuality);
}

// Every second image: readers must take both.
bool is_png(std::int64_t index) {
  return index % 2 == 1;
}
base::Result<std::string> as_jpeg_or_png(const Sample& sample) {
  return is_png(sample.index) ? encode_png(sample.picture) : as_jpeg(sample);
}

base::Result<std::string> as_cifar10(const Sample& sample) {
  return encode_cifar10(sample.picture, sample.label);
}

base::Result<std::string> as_tfrecord(const Sample& sample) {
  EVENKEEL_ASSIGN(std::string jpeg, as_jpeg(sample));
  return encode_tfrecord(encode_example({{"image/class/label", {}, {sample.label}},
                                         {"image/encoded", {std::move(jpeg)}, {}},
                                         {"image/format", {"jpeg"}, {}},
                                         {"image/height", {}, {sample.picture.height}},
                                         {"image/width", {}, {sample.picture.width}}}));
}

// All samples of one file, one behind the other.
base::Status write_records(const SetOptions& options, const std::string& path, Range range,
                           const Encoder& encode, SetSummary& summary) {
  EVENKEEL_ASSIGN(Output file, Output::create(path, summary));
  const auto take = [&file](std::int64_t, int, const std::string& bytes) { return file.append(bytes); };
  EVENKEEL_TRY(each_sample(options, range, 3, encode, take));
  return file.close();
}

}  // namespace

// train-images-idx3-ubyte and train-labels-idx1-ubyte; t10k-... for the split "test".
base::Status write_idx(const SetOptions& options, std::uint64_t split_number, SetSummary& summary) {
  const SplitOptions& split = options.splits[split_number];
  const std::string prefix = options.out + "/" + (split.name == "test" ? "t10k" : split.name);
  const auto count = static_cast<std::uint32_t>(split.samples);
  EVENKEEL_ASSIGN(Output images, Output::create(prefix + "-images-idx3-ubyte", summary));
  EVENKEEL_ASSIGN(Output labels, Output::create(prefix + "-labels-idx1-ubyte", summary));
  EVENKEEL_TRY(images.append(idx_header({count, static_cast<std::uint32_t>(options.height_low),
                                         static_cast<std::uint32_t>(options.width_low)})));
  EVENKEEL_TRY(labels.append(idx_header({count})));
  const auto take = [&](std::int64_t, int label, const std::string& bytes) -> base::Status {
    EVENKEEL_TRY(images.append(bytes));
    return labels.append(std::string(1, static_cast<char>(label)));
  };
  EVENKEEL_TRY(each_sample(options, {split_number, 0, split.samples}, 1, raw_pixels, take));
  EVENKEEL_TRY(images.close());
  return labels.close();
}

// data_batch_1.bin, ...; test_batch.bin for every split but the first.
base::Status write_cifar10(const SetOptions& options, std::uint64_t split_number, SetSummary& summary) {
  const SplitOptions& split = options.splits[split_number];
  if (split_number > 0)
    return write_records(options, options.out + "/test_batch.bin", {split_number, 0, split.samples},
                         as_cifar10, summary);
  for (int number = 0; number < split.files; ++number) {
    EVENKEEL_TRY(write_records(options, format("%s/data_batch_%d.bin", options.out.c_str(), number + 1),
                               range_of_file(split, split_number, number), as_cifar10, summary));
  }
  return {};
}

base::Status write_tfrecord(const SetOptions& options, std::uint64_t split_number, SetSummary& summary) {
  const SplitOptions& split = options.splits[split_number];
  for (int number = 0; number < split.files; ++number) {
    const std::string path =
        format("%s/%s-%05d-of-%05d", options.out.c_str(), split.name.c_str(), number, split.files);
    EVENKEEL_TRY(
        write_records(options, path, range_of_file(split, split_number, number), as_tfrecord, summary));
  }
  return {};
}

// <split>/class_003/000017.jpg; digits so that the order by bytes is the order of the labels.
base::Status write_imagefolder(const SetOptions& options, std::uint64_t split_number, SetSummary& summary) {
  const SplitOptions& split = options.splits[split_number];
  const std::string root = options.out + "/" + split.name;
  for (int label = 0; label < options.classes; ++label)
    EVENKEEL_TRY(make_folder(format("%s/class_%04d", root.c_str(), label)));
  const auto take = [&](std::int64_t index, int label, const std::string& bytes) -> base::Status {
    EVENKEEL_ASSIGN(Output file,
                    Output::create(format("%s/class_%04d/%08ld.%s", root.c_str(), label,
                                          static_cast<long>(index), is_png(index) ? "png" : "jpg"),
                                   summary));
    EVENKEEL_TRY(file.append(bytes));
    return file.close();
  };
  return each_sample(options, {split_number, 0, split.samples}, 3, as_jpeg_or_png, take);
}

// <split>-000000.tar with 00000017.jpg and 00000017.cls, the label in digits.
base::Status write_webdataset(const SetOptions& options, std::uint64_t split_number, SetSummary& summary) {
  const SplitOptions& split = options.splits[split_number];
  for (int number = 0; number < split.files; ++number) {
    EVENKEEL_ASSIGN(
        Output file,
        Output::create(format("%s/%s-%06d.tar", options.out.c_str(), split.name.c_str(), number), summary));
    const auto take = [&](std::int64_t index, int label, const std::string& bytes) -> base::Status {
      const std::string key = format("%08ld", static_cast<long>(index));
      EVENKEEL_TRY(file.append(encode_tar_entry(key + (is_png(index) ? ".png" : ".jpg"), bytes)));
      return file.append(encode_tar_entry(key + ".cls", std::to_string(label)));
    };
    EVENKEEL_TRY(each_sample(options, range_of_file(split, split_number, number), 3, as_jpeg_or_png, take));
    EVENKEEL_TRY(file.append(tar_end()));
    EVENKEEL_TRY(file.close());
  }
  return {};
}

}  // namespace evenkeel::data_tool::internal
