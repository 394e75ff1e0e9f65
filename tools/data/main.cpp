// evenkeel-data: writes small data sets of every format that the trainer reads, for tests and examples.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <regex>

#include "tools/data/sets.h"

namespace {

using evenkeel::data_tool::SetOptions;

constexpr int kBadConfiguration = 64;
constexpr int kWriteFailed = 74;

struct Arguments {
  std::string format, out, size, size_range;
  int classes = 0;
  std::int64_t train = -1, eval = -1;
  int files = 0;
  std::uint64_t seed = 1;
  int threads = 2;
};

SetOptions defaults_of(const std::string& format, const std::string& out) {
  if (format == "cassava") return evenkeel::data_tool::cassava(out);
  SetOptions o;
  o.format = format;
  o.out = out;
  const int train_files = format == "cifar10" ? 5 : format == "tfrecord" || format == "webdataset" ? 4 : 1;
  o.splits = {{"train", 1000, train_files}, {"test", 200, 1}};
  if (format == "idx") o.width_low = o.width_high = o.height_low = o.height_high = 28;
  if (format == "cifar10") o.width_low = o.width_high = o.height_low = o.height_high = 32;
  return o;
}

// False with a message where a size cannot be read.
bool apply_sizes(const Arguments& a, SetOptions& o) {
  std::smatch match;
  if (!a.size.empty()) {
    if (!std::regex_match(a.size, match, std::regex("([0-9]{1,5})x([0-9]{1,5})"))) {
      std::fprintf(stderr, "evenkeel-data: --size \"%s\" is not WIDTHxHEIGHT, as in 28x28\n", a.size.c_str());
      return false;
    }
    o.width_low = o.width_high = std::stoi(match[1]);
    o.height_low = o.height_high = std::stoi(match[2]);
  }
  if (!a.size_range.empty()) {
    if (!std::regex_match(a.size_range, match, std::regex("([0-9]{1,5})-([0-9]{1,5})"))) {
      std::fprintf(stderr, "evenkeel-data: --size-range \"%s\" is not LOW-HIGH, as in 200-400\n",
                   a.size_range.c_str());
      return false;
    }
    o.width_low = o.height_low = std::stoi(match[1]);
    o.width_high = o.height_high = std::stoi(match[2]);
  }
  return true;
}

void apply(const Arguments& a, SetOptions& o) {
  if (a.classes > 0 && a.classes != o.classes) {
    o.classes = a.classes;
    o.shares.clear();
  }
  if (a.train >= 0) o.splits[0].samples = a.train;
  if (a.eval >= 0) {
    for (std::size_t i = 1; i < o.splits.size(); ++i) o.splits[i].samples = a.eval;
  }
  if (a.files > 0) o.splits[0].files = a.files;
  o.seed = a.seed;
  o.threads = a.threads;
}

void declare(CLI::App& app, Arguments& a) {
  app.add_option(
         "format", a.format,
         "idx, cifar10, tfrecord, imagefolder, webdataset; or cassava: tfrecord files like those of the "
         "Cassava leaf set")
      ->required();
  app.add_option("--out", a.out, "Folder to write to; made where it is missing")->required();
  app.add_option("--classes", a.classes, "Classes [10; cassava 5]")->check(CLI::Range(1, 10000));
  app.add_option("--train", a.train, "Training samples [1000; cassava 5656]")
      ->check(CLI::Range(0L, 100000000L));
  app.add_option("--eval", a.eval, "Samples of each other split [200; cassava 1889 and 1885]")
      ->check(CLI::Range(0L, 100000000L));
  app.add_option("--size", a.size, "WIDTHxHEIGHT of every image [idx 28x28, cifar10 32x32, else 64x64]");
  app.add_option("--size-range", a.size_range, "LOW-HIGH: both sides drawn for each image [cassava 200-400]");
  app.add_option("--files", a.files, "Files of the training split [cifar10 5, tfrecord and webdataset 4]")
      ->check(CLI::Range(1, 99999));
  app.add_option("--seed", a.seed, "The same seed gives the same bytes [1]");
  app.add_option("--threads", a.threads, "Threads that draw and encode [2]")->check(CLI::Range(1, 64));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Writes a small data set with classes that can be learned."};
  Arguments arguments;
  declare(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadConfiguration;
  }
  SetOptions options = defaults_of(arguments.format, arguments.out);
  if (!apply_sizes(arguments, options)) return kBadConfiguration;
  apply(arguments, options);
  const auto summary = evenkeel::data_tool::write_set(options);
  if (!summary.ok()) {
    std::fprintf(stderr, "evenkeel-data: %s\n", summary.error().message.c_str());
    return summary.error().code == evenkeel::base::ErrorCode::kInvalidInput ? kBadConfiguration
                                                                            : kWriteFailed;
  }
  std::printf("%s: %ld samples of %d classes, %ld files, %.1f MB\n", options.out.c_str(),
              static_cast<long>(summary->samples), options.classes, static_cast<long>(summary->files),
              static_cast<double>(summary->bytes) / 1e6);
  return 0;
}
