// Good files, damaged at random places by a fixed sequence of numbers: whatever a parser says, it says it,
// and neither reads nor writes where it must not. Most is gained under the sanitizers.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/files_fake.h"
#include "trainer/data/example.h"
#include "trainer/data/image_codec.h"
#include "trainer/data/tar_reader.h"
#include "trainer/data/test_pictures.h"
#include "trainer/data/tfrecord.h"

namespace evenkeel::trainer {
namespace {

using namespace testing;  // NOLINT: test helpers

class Damage {
 public:
  explicit Damage(std::uint32_t seed) : state_(seed) {}

  // A few bytes changed, a piece taken out or doubled, or the end cut off.
  std::string apply(std::string bytes) {
    for (std::uint32_t i = 0; i <= below(3); ++i) {
      if (bytes.empty()) return bytes;
      const std::size_t at = below(bytes.size()),
                        length = below(std::min<std::size_t>(bytes.size() - at, 40));
      switch (below(6)) {
        case 0:
          bytes.resize(at);
          break;
        case 1:
          bytes.erase(at, length);
          break;
        case 2:
          bytes.insert(at, bytes.substr(at, length));
          break;
        case 3:
          bytes[at] = '\xff';
          break;
        case 4:
          bytes[at] = static_cast<char>(below(256));
          break;
        default:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
      }
    }
    return bytes;
  }

 private:
  std::uint32_t below(std::size_t bound) {
    state_ = state_ * 1664525 + 1013904223;
    return bound == 0 ? 0 : static_cast<std::uint32_t>((state_ >> 8) % bound);
  }
  std::uint32_t state_;
};

constexpr std::uint32_t kRounds = 1500;

TEST(Mutations, of_pictures) {
  const Image picture = gradient(24, 40, 7);
  const std::vector<std::string> good = {
      jpeg(picture, {85, 0, TJSAMP_420}), jpeg(picture, {85, TJFLAG_PROGRESSIVE, TJSAMP_444}),
      four_ink_jpeg(solid(16, 16, {255, 0, 0, 255})), with_orientation(jpeg(picture), 7), png(picture)};
  std::int64_t decoded = 0;
  for (const std::string& bytes : good) {
    Damage damage(static_cast<std::uint32_t>(bytes.size()));
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      const std::string bad = damage.apply(bytes);
      const auto header = read_image_header(bytes_of(bad), {4096, 1 << 20});
      if (!header.ok()) {
        ASSERT_FALSE(header.error().message.empty());
        continue;
      }
      const auto image = decode_image(bytes_of(bad), *header, 1 << (round % 4));
      if (!image.ok()) continue;
      ++decoded;
      ASSERT_EQ(image->pixels.size(), static_cast<std::size_t>(image->height) * image->row_bytes());
    }
  }
  EXPECT_GT(decoded, 0);  // a changed bit in a scan is only seen by a checksum around the file
}

TEST(Mutations, of_archives_and_records) {
  const std::string tar = tar_member("a.png", png(solid(4, 4, {1, 2, 3}))) + tar_member("a.cls", "3") +
                          tar_member("././@LongLink", std::string(120, 'n') + std::string(1, '\0'), 'L') +
                          tar_member("x", "y") + tar_member("p", "14 path=b.png\n", 'x') +
                          tar_member("x", "z") + tar_end();
  const std::string records =
      frame_tfrecord(example("picture", 3)) + frame_tfrecord("") + frame_tfrecord("abc");
  Damage damage(1);
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    base::FakeFiles files;
    const std::string bad_tar = damage.apply(tar), bad_records = damage.apply(records);
    files.put("/t", bad_tar);
    files.put("/r", bad_records);
    FileWindow tar_window(files, "/t", bad_tar.size()), record_window(files, "/r", bad_records.size());
    const auto member = [&](const TarMember& m) -> base::Status {
      EXPECT_LE(m.data_offset + m.size, bad_tar.size());
      return {};
    };
    const base::Status walked =
        walk_tar(tar_window, "/t", member, [](const TarFault& fault) { EXPECT_FALSE(fault.cause.empty()); });
    EXPECT_TRUE(walked.ok() || walked.error().code == base::ErrorCode::kCorruptData);
    const base::Status framed = walk_tfrecord(record_window, "/r", 100, [&](const TfrecordEntry& entry) {
      EXPECT_LE(entry.offset + (entry.length == 0 ? 0 : entry.length + 16), bad_records.size());
    });
    EXPECT_TRUE(framed.ok() || framed.error().code == base::ErrorCode::kCorruptData);
    const std::string record = damage.apply(example("picture", 3));
    const auto fields = parse_example(record);
    EXPECT_TRUE(!fields.ok() || fields->image.size() <= record.size());
  }
}

}  // namespace
}  // namespace evenkeel::trainer
