#include "trainer/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include "base/files_fake.h"

namespace evenkeel::trainer {
namespace {

using base::ErrorCode;

std::string file_of(const std::string& header, const std::string& data) {
  std::string length(8, '\0');
  for (int i = 0; i < 8; ++i)
    length[static_cast<std::size_t>(i)] = static_cast<char>(header.size() >> (8 * i) & 0xff);
  return length + header + data;
}

base::Result<SafetensorsIndex> index_of(const std::string& content) {
  base::FakeFiles files;
  files.put("/w.safetensors", content);
  return read_safetensors_index(files, "/w.safetensors");
}

const char kGood[] =
    R"({"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[],"data_offsets":[8,12]}})";

TEST(Safetensors, a_written_file_is_read_back_with_the_same_bits) {
  std::vector<float> a{1.5f, -2.25f, 1e-30f, 0.0f, -0.0f, 3e38f};
  std::vector<float> b{7.0f};
  std::vector<float> none;
  const std::vector<TensorView> tensors{
      {"dense_1.kernel", {2, 3}, a}, {"dense_1.bias", {1}, b}, {"empty", {0, 4}, none}};
  std::string content = safetensors_header(tensors);
  EXPECT_EQ(content.size() % 8, 0u);
  for (const TensorView& t : tensors)
    content.append(reinterpret_cast<const char*>(t.values.data()), t.values.size_bytes());
  base::FakeFiles files;
  files.put("/w", content);
  std::vector<float> a2(6), b2(1);
  // Another order than the file's.
  const auto status = read_safetensors(
      files, "/w", {{"empty", {0, 4}, none}, {"dense_1.bias", {1}, b2}, {"dense_1.kernel", {2, 3}, a2}});
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(a2, a);
  EXPECT_EQ(b2, b);
}

TEST(Safetensors, a_good_header_gives_its_entries_in_the_order_of_the_data) {
  const auto index = index_of(file_of(kGood, std::string(12, 'x')));
  ASSERT_TRUE(index.ok()) << index.error().message;
  ASSERT_EQ(index->entries.size(), 2u);
  EXPECT_EQ(index->entries[0].name, "a");
  EXPECT_EQ(index->entries[1].end, 12u);
  EXPECT_TRUE(index_of(file_of(R"({"__metadata__":{"k":"v"}})", "")).ok());
}

TEST(Safetensors, what_a_header_claims_is_checked_against_the_file) {
  const std::string data(12, 'x');
  const struct {
    const char* why;
    std::string content;
  } cases[] = {
      {"no length", "abc"},
      {"empty", ""},
      {"header longer than the file", file_of(kGood, data).substr(0, 40)},
      {"header of 2^63 bytes", std::string("\0\0\0\0\0\0\0\x80{}", 10)},
      {"header above 8 MiB", file_of(std::string((8u << 20) + 1, ' '), data)},
      {"data cut", file_of(kGood, data.substr(0, 11))},
      {"data too long", file_of(kGood, data + "y")},
      {"no JSON", file_of("{\"a\":", data)},
      {"no object", file_of("[1]", data)},
      {"too deep", file_of(std::string(40, '[') + std::string(40, ']'), "")},
      {"a name twice",
       file_of(
           R"({"a":{"dtype":"U8","shape":[6],"data_offsets":[0,6]},"a":{"dtype":"U8","shape":[6],"data_offsets":[6,12]}})",
           data)},
      {"unknown dtype", file_of(R"({"a":{"dtype":"F33","shape":[12],"data_offsets":[0,12]}})", data)},
      {"missing shape", file_of(R"({"a":{"dtype":"U8","data_offsets":[0,12]}})", data)},
      {"unknown member", file_of(R"({"a":{"dtype":"U8","shape":[12],"data_offsets":[0,12],"x":1}})", data)},
      {"negative dimension", file_of(R"({"a":{"dtype":"U8","shape":[-12],"data_offsets":[0,12]}})", data)},
      {"fractional dimension", file_of(R"({"a":{"dtype":"U8","shape":[12.0],"data_offsets":[0,12]}})", data)},
      {"shape overflows",
       file_of(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", "")},
      {"shape does not give the length",
       file_of(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,12]}})", data)},
      {"offsets reversed", file_of(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[12,0]}})", data)},
      {"a gap",
       file_of(
           R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[6],"data_offsets":[6,12]}})",
           data)},
      {"an overlap",
       file_of(
           R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[6],"data_offsets":[6,12]}})",
           data)},
  };
  for (const auto& c : cases) {
    const auto index = index_of(c.content);
    ASSERT_FALSE(index.ok()) << c.why;
    EXPECT_EQ(index.error().code, ErrorCode::kCorruptData) << c.why << ": " << index.error().message;
  }
}

TEST(Safetensors, nothing_is_loaded_unless_everything_fits) {
  base::FakeFiles files;
  files.put("/w", file_of(kGood, std::string(12, '\1')));
  std::vector<float> two(2), one(1), three(3);
  const auto message = [&](const std::vector<TensorView>& targets) {
    const auto status = read_safetensors(files, "/w", targets);
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kMismatch);
    return status.error().message;
  };
  EXPECT_NE(message({{"a", {2, 1}, two}}).find("\"b\" is not in the model"), std::string::npos);
  EXPECT_NE(message({{"a", {2, 1}, two}, {"b", {}, one}, {"c", {3}, three}}).find("\"c\""),
            std::string::npos);
  EXPECT_NE(message({{"a", {3}, three}, {"b", {}, one}}).find("(2, 1) in the file, F32 (3) in the model"),
            std::string::npos);
  EXPECT_EQ(two, std::vector<float>(2)) << "something was loaded";
}

}  // namespace
}  // namespace evenkeel::trainer
