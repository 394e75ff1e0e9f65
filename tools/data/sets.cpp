#include "tools/data/sets.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>

#include "tools/data/sets_internal.h"

namespace evenkeel::data_tool {
namespace internal {
namespace {

constexpr std::uint64_t kLabelStream = 1 << 20;  // apart from the numbers of splits

int label_of(const SetOptions& options, std::uint64_t split_number, std::int64_t index) {
  if (options.shares.empty()) return static_cast<int>(index % options.classes);
  double sum = 0;
  for (const double share : options.shares) sum += share;
  Dice dice(options.seed, kLabelStream + split_number, static_cast<std::uint64_t>(index));
  double left = dice.unit() * sum;
  for (int label = 0; label + 1 < options.classes; ++label) {
    left -= options.shares[static_cast<std::size_t>(label)];
    if (left < 0) return label;
  }
  return options.classes - 1;
}

Sample make_sample(const SetOptions& options, std::uint64_t split_number, std::int64_t index, int channels) {
  Dice dice(options.seed, split_number, static_cast<std::uint64_t>(index));
  PictureOrder order;
  order.label = label_of(options, split_number, index);
  order.classes = options.classes;
  order.width = dice.whole(options.width_low, options.width_high);
  order.height = dice.whole(options.height_low, options.height_high);
  order.channels = channels;
  return {index, order.label, draw(order, dice)};
}

}  // namespace

base::Result<Output> Output::create(const std::string& path, SetSummary& summary) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr)
    return base::Error{base::ErrorCode::kIo, "cannot create " + path + ": " + std::strerror(errno)};
  ++summary.files;
  return Output(path, file, summary);
}

base::Status Output::append(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size())
    return base::Error{base::ErrorCode::kIo, "cannot write " + path_ + ": " + std::strerror(errno)};
  summary_->bytes += bytes.size();
  return {};
}

base::Status Output::close() {
  if (std::fclose(file_.release()) != 0)
    return base::Error{base::ErrorCode::kIo, "cannot write " + path_ + ": " + std::strerror(errno)};
  return {};
}

base::Status make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return base::Error{base::ErrorCode::kIo, "cannot make folder " + path + ": " + error.message()};
  return {};
}

Range range_of_file(const SplitOptions& split, std::uint64_t split_number, int number) {
  return {split_number, split.samples * number / split.files, split.samples * (number + 1) / split.files};
}

base::Status each_sample(const SetOptions& options, Range range, int channels, const Encoder& encode,
                         const std::function<base::Status(std::int64_t, int, std::string)>& take) {
  constexpr std::int64_t kBlock = 256;  // encoded samples in memory at a time
  for (std::int64_t begin = range.begin; begin < range.end; begin += kBlock) {
    const std::int64_t count = std::min(kBlock, range.end - begin);
    std::vector<base::Result<std::string>> encoded(static_cast<std::size_t>(count), std::string());
    std::atomic<std::int64_t> next{0};
    const auto work = [&] {
      for (std::int64_t i = next++; i < count; i = next++) {
        encoded[static_cast<std::size_t>(i)] =
            encode(make_sample(options, range.split_number, begin + i, channels));
      }
    };
    std::vector<std::thread> helpers;
    for (int i = 1; i < options.threads; ++i) helpers.emplace_back(work);
    work();
    for (std::thread& helper : helpers) helper.join();
    for (std::int64_t i = 0; i < count; ++i) {
      auto& bytes = encoded[static_cast<std::size_t>(i)];
      if (!bytes.ok()) return std::move(bytes).error();
      EVENKEEL_TRY(
          take(begin + i, label_of(options, range.split_number, begin + i), std::move(bytes).value()));
    }
  }
  return {};
}

}  // namespace internal

namespace {

using internal::write_cifar10;
using internal::write_idx;
using internal::write_imagefolder;
using internal::write_tfrecord;
using internal::write_webdataset;

base::Error invalid(std::string what) {
  return base::Error{base::ErrorCode::kInvalidInput, std::move(what)};
}

base::Status check(const SetOptions& o) {
  if (o.classes < 1 || o.classes > 10000)
    return invalid("classes " + std::to_string(o.classes) + " must be 1 to 10000");
  if ((o.format == "idx" || o.format == "cifar10") && o.classes > 256)
    return invalid(o.format + " has one byte for a label: at most 256 classes, not " +
                   std::to_string(o.classes));
  if (std::min(o.width_low, o.height_low) < 8 || std::max(o.width_high, o.height_high) > 4096 ||
      o.width_low > o.width_high || o.height_low > o.height_high) {
    return invalid("sizes must be from 8 to 4096 pixels, the smaller first");
  }
  const bool fixed = o.width_low == o.width_high && o.height_low == o.height_high;
  if (o.format == "idx" && !fixed) return invalid("idx holds images of one size; give --size");
  if (o.format == "cifar10" && (!fixed || o.width_low != 32 || o.height_low != 32))
    return invalid("cifar10 holds images of 32x32 alone");
  for (const SplitOptions& split : o.splits) {
    if (split.samples < 0) return invalid("split " + split.name + ": samples must not be negative");
    if (split.files < 1 || split.files > 99999)
      return invalid("split " + split.name + ": files must be 1 to 99999");
  }
  if (!o.shares.empty() && static_cast<int>(o.shares.size()) != o.classes)
    return invalid("shares must be as many as classes");
  return {};
}

}  // namespace

SetOptions cassava(const std::string& out) {
  SetOptions o;
  o.format = "tfrecord";
  o.out = out;
  o.classes = 5;
  o.shares = {466, 1443, 773, 2658, 316};  // as uneven as the photographs that it stands for
  o.splits = {{"train", 5656, 4}, {"validation", 1889, 1}, {"test", 1885, 1}};
  o.width_low = o.height_low = 200;
  o.width_high = o.height_high = 400;
  return o;
}

base::Result<SetSummary> write_set(const SetOptions& options) {
  using Writer = base::Status (*)(const SetOptions&, std::uint64_t, SetSummary&);
  static const std::map<std::string, Writer> writers = {{"idx", write_idx},
                                                        {"cifar10", write_cifar10},
                                                        {"tfrecord", write_tfrecord},
                                                        {"imagefolder", write_imagefolder},
                                                        {"webdataset", write_webdataset}};
  const auto writer = writers.find(options.format);
  if (writer == writers.end()) {
    return invalid("format \"" + options.format +
                   "\" is not known; known: idx, cifar10, tfrecord, imagefolder, webdataset");
  }
  EVENKEEL_TRY(check(options));
  EVENKEEL_TRY(internal::make_folder(options.out));
  SetSummary summary;
  for (std::size_t i = 0; i < options.splits.size(); ++i) {
    EVENKEEL_TRY(writer->second(options, i, summary));
    summary.samples += options.splits[i].samples;
  }
  return summary;
}

}  // namespace evenkeel::data_tool
