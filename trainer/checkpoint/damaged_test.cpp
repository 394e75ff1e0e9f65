// Damaged files of tests/data/damaged/safetensors, each with what the reader says of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/checkpoint/init_from.h"
#include "trainer/checkpoint/safetensors.h"

namespace evenkeel::trainer {
namespace {

const std::string kFolder = EVENKEEL_SOURCE_DIR "/tests/data/damaged/safetensors";

const std::pair<const char*, const char*> kTable[] = {
    {"data-cut", "the tensors take 16 bytes, the file has 10: truncated"},
    {"header-cut", "a header of 56 bytes in a file of 30"},
    {"header-no-json", "header: not valid JSON at byte"},
    {"length-of-a-petabyte", "a header of 1125899906842624 bytes in a file of"},
    {"name-twice", "key \"a\" is there twice in one object"},
    {"no-length", "truncated: 8 bytes wanted at offset 0, the file ends at 3"},
    {"overlap", "tensor \"b\" begins at 4, expected 8: the tensors leave a gap or overlap"},
    {"shape-of-another-size", "tensor \"kernel\": shape (3, 3) of F32 does not take the bytes from 0 to 16"},
    {"shape-overflows", "tensor \"a\": shape (4611686018427387904, 8) of F32 does not take"},
    {"unknown-type", "tensor \"a\": unknown dtype \"F128\""},
};

TEST(DamagedSafetensors, each_is_refused_with_its_reason_and_its_name) {
  for (const auto& [name, message] : kTable) {
    const std::string path = kFolder + "/" + name;
    const auto index = read_safetensors_index(base::real_files(), path);
    ASSERT_FALSE(index.ok()) << name;
    EXPECT_EQ(index.error().code, base::ErrorCode::kCorruptData) << name;
    EXPECT_THAT(index.error().message, testing::HasSubstr(message)) << name;
    EXPECT_THAT(index.error().message, testing::HasSubstr(path));
    // The same as weights to begin with: nothing of it is taken.
    std::vector<float> values(1);
    EXPECT_FALSE(load_initial_weights(base::real_files(), path, {}, {{"a", {1}, values}}).ok()) << name;
    EXPECT_EQ(values[0], 0.0f) << name;
  }
}

TEST(DamagedSafetensors, every_file_of_the_folder_is_in_the_table) {
  const auto entries = base::real_files().list(kFolder);
  ASSERT_TRUE(entries.ok()) << entries.error().message;
  ASSERT_EQ(entries->size(), std::size(kTable));
  for (std::size_t i = 0; i < entries->size(); ++i) EXPECT_EQ((*entries)[i].name, kTable[i].first);
}

}  // namespace
}  // namespace evenkeel::trainer
