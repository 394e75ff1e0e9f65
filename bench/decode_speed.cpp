// How many photographs one core makes ready in a second, stage by stage: ./dev bench data. Processor time, so
// that other programs on the machine disturb little.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>

#include "base/files_fake.h"
#include "trainer/data/batch.h"
#include "trainer/data/image_codec.h"
#include "trainer/data/open_dataset.h"
#include "trainer/data/resize.h"
#include "trainer/data/test_pictures.h"
#include "trainer/data/tfrecord.h"

namespace evenkeel::trainer {
namespace {

using namespace testing;  // NOLINT: test helpers

// As detailed as a photograph: with quality 90 about 60 KB.
Image photograph(int height, int width, std::uint32_t state) {
  Image image = gradient(height, width);
  int noise = 0;
  for (std::uint8_t& pixel : image.pixels) {
    state = state * 1664525 + 1013904223;
    noise = (3 * noise + static_cast<int>(state >> 26) - 32) / 4;
    pixel = static_cast<std::uint8_t>(std::min(255, std::max(0, pixel + noise)));
  }
  return image;
}

// Of the processor, not of the wall: other programs may run.
double seconds_of(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double start = now();
  work();
  return now() - start;
}

void must(bool ok) {
  if (ok) return;
  std::fputs("a picture could not be read\n", stderr);
  std::exit(70);
}

void run() {
  constexpr int kPictures = 64;
  std::string file;
  std::size_t bytes = 0;
  std::vector<std::string> pictures;
  for (std::uint32_t i = 0; i < kPictures; ++i) {
    pictures.push_back(jpeg(photograph(375, 500, i), {90, 0, TJSAMP_420}));
    bytes += pictures.back().size();
    file += frame_tfrecord(example(pictures.back(), i % 5));
  }
  std::printf("%d JPEGs of 500 x 375, %zu KB each\n", kPictures, bytes / kPictures / 1000);
  for (const int shrink : {1, 2}) {
    const double seconds = seconds_of([&] {
      for (const std::string& picture : pictures) {
        must(decode_image(bytes_of(picture), *read_image_header(bytes_of(picture)), shrink).ok());
      }
    });
    std::printf("decode at 1/%d: %.0f images/s\n", shrink, kPictures / seconds);
  }
  const Image whole = photograph(375, 500, 1);
  Image small;
  const double resizing = seconds_of([&] {
    for (int i = 0; i < kPictures; ++i) resize_box(whole, {23, 85, 328, 328}, 224, 224, small);
  });
  std::printf("resize of 328 x 328 to 224 x 224: %.0f images/s\n", kPictures / resizing);
  base::FakeFiles files;
  files.put("/d/train.tfrecord", file);
  contract::DatasetSpec spec = photographs("tfrecord", 224, 224);
  spec.augment = {contract::Augmentation::kRandomResizedCrop, contract::Augmentation::kHorizontalFlip};
  const auto pair = open_dataset(files, spec, 5);
  const EpochOrder order(kPictures, Shuffle::kOn, 1, 0);
  for (const bool augment : {false, true}) {
    ReaderOptions options;
    options.augment = augment;
    const auto reader = BatchReader::make(*pair->train, spec, options);
    HostBatch batch;
    const double seconds = seconds_of([&] { must(reader->read(order, 0, 0, kPictures, batch).ok()); });
    std::printf("record to 224 x 224 floats, %s: %.0f images/s\n",
                augment ? "random resized crop and flip" : "centre crop", kPictures / seconds);
  }
}

}  // namespace
}  // namespace evenkeel::trainer

int main() {
  evenkeel::trainer::run();
}
