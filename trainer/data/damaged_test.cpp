// Damaged data sets of tests/data/damaged, each with what is said of it. A folder that no table knows fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "trainer/data/batch.h"
#include "trainer/data/open_dataset.h"

namespace evenkeel::trainer {
namespace {

const std::string kFolder = EVENKEEL_SOURCE_DIR "/tests/data/damaged/";

// Folder of the case, and the message after the name of that folder.
using Table = std::vector<std::pair<std::string, std::string>>;

const Table kIdx = {
    {"counts-differ",
     "/train-images-idx3-ubyte has 3 images but /train-labels-idx1-ubyte has 2 labels: the two files do not "
     "belong together"},
    {"dimension-of-billions",
     "/train-images-idx3-ubyte: at byte 8: dimension 2 is 4294967295, above the limit of 2147483648"},
    {"gzip-checksum",
     "/train-images-idx3-ubyte.gz: at compressed byte 30: damaged gzip stream (incorrect data check); fetch "
     "the file again"},
    {"gzip-cut",
     "/train-images-idx3-ubyte.gz: at compressed byte 25: truncated gzip stream; fetch the file again"},
    {"images-cut",
     "/train-images-idx3-ubyte: at byte 25: truncated in record 2: the header announces 3 x 2 x 2 = 28 bytes "
     "with the header, but the file has 25; fetch the file again"},
    {"label-out-of-range",
     "/train-labels-idx1-ubyte: record 1, byte offset 9: label 7 is out of range, there are 5 classes (0 to "
     "4): correct the file or model.options.numClasses"},
    {"magic-of-labels",
     "/train-images-idx3-ubyte: at byte 0: magic number 0x00000801 instead of 0x00000803; images and labels "
     "seem to be exchanged"},
};
const Table kCifar = {
    {"cut",
     "/data_batch_1.bin: record 1, byte offset 3073: truncated: the file has 3113 bytes, no multiple of the "
     "3073 of a record; fetch it again"},
    {"empty", "/data_batch_1.bin: at byte 0: the file is empty; fetch it again"},
    {"label-out-of-range",
     "/data_batch_1.bin: record 1, byte offset 3073: label 200 is out of range, there are 5 classes (0 to "
     "4)"},
};
const Table kTfrecord = {
    {"compressed",
     "/train.tfrecord.zst is compressed in a way that is not read here: use gzip, or decompress it (JPEG "
     "records hardly shrink)"},
    {"cut-in-data",
     "/train.tfrecord: record 1, byte offset 188: truncated: the record announces 172 bytes, but the file "
     "ends at byte 356"},
    {"cut-in-length",
     "/train.tfrecord: record 1, byte offset 188: truncated: the file ends at byte 195, inside the length of "
     "the record"},
    {"data-bit",
     "/train.tfrecord: record 1, byte offset 188: data CRC mismatch: stored 077f0a8d, computed 2de2cbc1"},
    {"example-cut",
     "/train.tfrecord: record 1, byte offset 188: tf.train.Example: truncated: a field announces 169 bytes, "
     "27 are left"},
    {"example-image-is-text",
     "/train.tfrecord: record 1, byte offset 188: neither JPEG nor PNG: the image begins with 6e 6f 20 70"},
    {"example-label-as-text",
     "/train.tfrecord: record 1, byte offset 188: tf.train.Example: label holds byte strings instead of one "
     "integer"},
    {"example-label-out-of-range",
     "/train.tfrecord: record 1, byte offset 188: label -3 is out of range, there are 5 classes (0 to 4)"},
    {"example-number-of-eleven-bytes",
     "/train.tfrecord: record 1, byte offset 188: tf.train.Example: a number has more than 64 bits"},
    {"example-without-image",
     "/train.tfrecord: record 1, byte offset 188: tf.train.Example: neither image/encoded nor image is "
     "there"},
    {"example-without-label",
     "/train.tfrecord: record 1, byte offset 188: tf.train.Example: neither image/class/label nor label is "
     "there"},
    {"length-bits",
     "/train.tfrecord: record 1, byte offset 188: length CRC mismatch: stored 320496f7, computed 84027ffa: "
     "what follows in the file cannot be found; fetch the file again"},
    {"length-of-a-terabyte",
     "/train.tfrecord: record 1, byte offset 188: truncated: the record announces 1099511627776 bytes, but "
     "the file ends at byte 240"},
    {"part-missing",
     "/train-00001-of-00002 is missing, though train-00000-of-00002 says that there are 2 files: fetch it, "
     "or rename the files"},
    {"text",
     "/train.tfrecord: record 0, byte offset 0: length CRC mismatch: stored 54206f6e, computed 82612a4f: "
     "what follows in the file cannot be found; fetch the file again"},
};
const Table kImagefolder = {
    {"gif",
     "/train/a/x.jpg: record 0, byte offset 0: neither JPEG nor PNG: the image begins with 47 49 46 38"},
    {"jpeg-above-the-limit",
     "/train/a/x.jpg: record 0, byte offset 0: the JPEG is 65535 x 65535 pixels, above the limit of 65500 a "
     "side"},
    {"jpeg-arithmetic",
     "/train/a/x.jpg: record 0, byte offset 0: the JPEG is arithmetic-coded, which is not supported: convert "
     "it to baseline"},
    {"jpeg-cut-in-header",
     "/train/a/x.jpg: record 0, byte offset 0: truncated: the JPEG has 100 bytes and ends before its first "
     "scan"},
    {"jpeg-cut-in-progressive", "/train/a/x.jpg: record 0, byte offset 0: JPEG: Premature end of JPEG file"},
    {"jpeg-cut-in-scan", "/train/a/x.jpg: record 0, byte offset 0: JPEG: Premature end of JPEG file"},
    {"jpeg-empty", "/train/a/x.jpg: record 0, byte offset 0: the image is empty"},
    {"jpeg-larger-than-its-bytes",
     "/train/a/x.jpg: record 0, byte offset 0: truncated: 715 bytes cannot hold the announced 16384 x 16384 "
     "pixels"},
    {"jpeg-lossless",
     "/train/a/x.jpg: record 0, byte offset 0: the JPEG is lossless, which is not supported: convert it to "
     "baseline"},
    {"jpeg-marker-length", "/train/a/x.jpg: record 0, byte offset 0: a JPEG marker at byte 4 has length 0"},
    {"jpeg-of-12-bits",
     "/train/a/x.jpg: record 0, byte offset 0: the JPEG has 12 bits a sample, only 8 are supported: convert "
     "it"},
    {"jpeg-without-end", "/train/a/x.jpg: record 0, byte offset 0: JPEG: Premature end of JPEG file"},
    {"jpeg-wrong-code-table",
     "/train/a/x.jpg: record 0, byte offset 0: JPEG: Bogus Huffman table definition"},
    {"no-class", "/train has no class directory: pictures belong into /train/<class>/"},
    {"png-above-the-limit",
     "/train/a/x.png: record 0, byte offset 0: the PNG is 70000 x 2 pixels, above the limit of 65500 a side"},
    {"png-checksum", "/train/a/x.png: record 0, byte offset 0: PNG: IDAT: incorrect data check"},
    {"png-cut", "/train/a/x.png: record 0, byte offset 0: PNG: truncated: the file ends too early"},
    {"png-larger-than-its-bytes",
     "/train/a/x.png: record 0, byte offset 0: truncated: 69 bytes cannot hold the announced 16000 x 16000 "
     "pixels"},
    {"png-rows-missing", "/train/a/x.png: record 0, byte offset 0: PNG: Not enough image data"},
    {"png-unknown-colour-type", "/train/a/x.png: record 0, byte offset 0: PNG: Invalid IHDR data"},
    {"png-without-end", "/train/a/x.png: record 0, byte offset 0: PNG: truncated: the file ends too early"},
};
const Table kWebdataset = {
    {"compressed",
     "/train-0.tar.gz is compressed, and its records cannot be reached one by one: decompress it (JPEG "
     "records hardly shrink)"},
    {"cut-in-header",
     "/train-0.tar: record 1, byte offset 2048: truncated: the archive ends at byte 2348 inside a header"},
    {"cut-in-member",
     "/train-0.tar: record 1, byte offset 2048: truncated: the archive ends at byte 2588 inside b.png"},
    {"header-checksum",
     "/train-0.tar: byte offset 2048: the checksum of the tar header does not match: what follows in the "
     "archive cannot be found; fetch it again"},
    {"label-is-text", "/train-0.tar: record 1, byte offset 2560: b.cls is no number: \"cat\""},
    {"label-missing", "/train-0.tar: record 1, byte offset 2560: sample b has no .cls"},
    {"label-out-of-range",
     "/train-0.tar: record 1, byte offset 2560: label 5 is out of range, there are 5 classes (0 to 4)"},
    {"pax-damaged",
     "/train-0.tar: byte offset 2048: a damaged pax header: what follows in the archive cannot be found; "
     "fetch it again"},
    {"picture-empty", "/train-0.tar: record 1, byte offset 2560: the image is empty"},
    {"picture-missing", "/train-0.tar: record 1, byte offset 2560: sample b has no picture"},
    {"size-no-number",
     "/train-0.tar: byte offset 2048: the tar header has no valid size: what follows in the archive cannot "
     "be found; fetch it again"},
    {"size-of-a-petabyte",
     "/train-0.tar: record 1, byte offset 2048: truncated: the archive ends at byte 4096 inside b.png"},
    {"without-end",
     "/train-0.tar: record 1, byte offset 2048: truncated: the archive ends at byte 2048 without the mark "
     "that ends an archive"},
};

// Opens it as a training split of five classes and reads it once.
base::Result<BatchTaken> read_all(const std::string& format, const std::string& path) {
  contract::DatasetSpec spec;
  spec.format = format;
  spec.path = path;
  spec.eval_split = "";
  if (format != "idx" && format != "cifar10") spec.image_size = {8, 8};
  EVENKEEL_ASSIGN(const SplitPair pair, open_dataset(base::real_files(), spec, 5));
  EVENKEEL_ASSIGN(const BatchReader reader, BatchReader::make(*pair.train, spec, {}));
  const std::int64_t samples = pair.train->info().samples;
  HostBatch batch;
  return reader.read(EpochOrder(static_cast<std::uint64_t>(samples), Shuffle::kOff, 0, 0), 0, 0, samples,
                     batch);
}

void check(const std::string& format, const Table& table) {
  const auto entries = base::real_files().list(kFolder + format);
  ASSERT_TRUE(entries.ok()) << entries.error().message;
  std::vector<std::string> names, known;
  for (const auto& entry : *entries) names.push_back(entry.name);
  for (const auto& entry : table) known.push_back(entry.first);
  EXPECT_EQ(names, known);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string path = kFolder + format + "/" + names[i];
    const auto taken = read_all(format, path);
    ASSERT_FALSE(taken.ok()) << names[i];
    std::string message = taken.error().message;
    for (std::size_t at = message.find(path); at != std::string::npos; at = message.find(path)) {
      message.replace(at, path.size(), "");
    }
    EXPECT_EQ(message, i < table.size() ? table[i].second : "") << names[i];
  }
}

TEST(Damaged, idx) {
  check("idx", kIdx);
}
TEST(Damaged, cifar10) {
  check("cifar10", kCifar);
}
TEST(Damaged, tfrecord_and_example) {
  check("tfrecord", kTfrecord);
}
TEST(Damaged, jpeg_and_png_in_an_imagefolder) {
  check("imagefolder", kImagefolder);
}
TEST(Damaged, tar_of_a_webdataset) {
  check("webdataset", kWebdataset);
}

}  // namespace
}  // namespace evenkeel::trainer
