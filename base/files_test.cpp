#include "base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/files_fake.h"

namespace evenkeel::base {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Status write(Files& files, const std::string& path, std::string_view text) {
  const std::string_view pieces[] = {text};
  return files.write_synced(path, pieces);
}

std::vector<std::string> names(Files& files, const std::string& directory) {
  std::vector<std::string> result;
  for (const DirEntry& entry : files.list(directory).value())
    result.push_back(entry.name + (entry.is_directory ? "/" : ""));
  return result;
}

// The fake must behave as the real one does: each test below runs on both.
class AnyFiles : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!GetParam()) {
      ASSERT_TRUE(fake_.make_directories("/t").ok());
      root_ = "/t/";
      return;
    }
    std::string pattern = testing::TempDir() + "evenkeel-files-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern + "/";
  }
  void TearDown() override {
    if (GetParam()) std::filesystem::remove_all(root_);
  }
  Files& files() { return GetParam() ? real_files() : fake_; }
  std::string at(const std::string& name) const { return root_ + name; }

 private:
  FakeFiles fake_;
  std::string root_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, AnyFiles, testing::Bool(),
                         [](const auto& kind) { return std::string(kind.param ? "real" : "fake"); });

TEST_P(AnyFiles, reads_what_was_written_in_pieces) {
  const std::string_view pieces[] = {"ab", "", "cde"};
  ASSERT_TRUE(files().write_synced(at("f"), pieces).ok());
  EXPECT_EQ(files().read(at("f"), 5).value(), "abcde");
  EXPECT_EQ(files().size(at("f")).value(), 5u);
  EXPECT_TRUE(files().exists(at("f")));
  ASSERT_TRUE(write(files(), at("f"), "x").ok());
  EXPECT_EQ(files().read(at("f"), 5).value(), "x");
  ASSERT_TRUE(write(files(), at("empty"), "").ok());
  EXPECT_EQ(files().read(at("empty"), 0).value(), "");
}

TEST_P(AnyFiles, a_large_file_comes_back_whole) {
  const std::string large(300'001, 'x');
  ASSERT_TRUE(write(files(), at("large"), large).ok());
  EXPECT_EQ(files().read(at("large"), large.size()).value(), large);
}

TEST_P(AnyFiles, too_long_names_both_numbers) {
  ASSERT_TRUE(write(files(), at("f"), "abcdef").ok());
  const auto result = files().read(at("f"), 5);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(result.error().message, HasSubstr("it has 6 bytes, at most 5"));
}

TEST_P(AnyFiles, what_is_not_there_is_not_found_by_name) {
  EXPECT_EQ(files().read(at("no"), 5).error().code, ErrorCode::kNotFound);
  EXPECT_THAT(files().read(at("no"), 5).error().message, HasSubstr(at("no")));
  EXPECT_EQ(files().read_range(at("no"), 0, 1).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(files().size(at("no")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(files().list(at("no")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(files().rename(at("no"), at("yes")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(write(files(), at("no/f"), "x").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(files().sync_directory(at("no")).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(files().exists(at("no")));
  EXPECT_TRUE(files().remove_all(at("no")).ok());
}

TEST_P(AnyFiles, ranges_are_exact_or_truncated) {
  ASSERT_TRUE(write(files(), at("f"), "abcdef").ok());
  EXPECT_EQ(files().read_range(at("f"), 2, 3).value(), "cde");
  EXPECT_EQ(files().read_range(at("f"), 6, 0).value(), "");
  const auto result = files().read_range(at("f"), 4, 3);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kCorruptData);
  EXPECT_THAT(result.error().message, HasSubstr("truncated: 3 bytes wanted at offset 4, the file ends at 6"));
  EXPECT_EQ(files().read_range(at("f"), 1, SIZE_MAX).error().code, ErrorCode::kCorruptData);
  EXPECT_EQ(files().read_range(at("f"), UINT64_MAX, 1).error().code, ErrorCode::kCorruptData);
}

TEST_P(AnyFiles, lists_by_name_and_tells_folders) {
  ASSERT_TRUE(files().make_directories(at("b/c")).ok());
  ASSERT_TRUE(files().make_directories(at("b/c")).ok());  // there already: fine
  ASSERT_TRUE(write(files(), at("z"), "").ok());
  ASSERT_TRUE(write(files(), at("a"), "").ok());
  EXPECT_THAT(names(files(), at("")), ElementsAre("a", "b/", "z"));
  ASSERT_TRUE(files().remove_all(at("b")).ok());
  EXPECT_THAT(names(files(), at("")), ElementsAre("a", "z"));
}

TEST_P(AnyFiles, folders_and_files_are_not_mixed_up) {
  ASSERT_TRUE(files().make_directories(at("d")).ok());
  ASSERT_TRUE(write(files(), at("f"), "x").ok());
  EXPECT_EQ(files().read(at("d"), 5).error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(write(files(), at("d"), "x").error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(files().make_directories(at("f/x")).error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(files().list(at("f")).error().code, ErrorCode::kInvalidInput);
}

TEST_P(AnyFiles, rename_replaces_a_file_but_no_full_folder) {
  ASSERT_TRUE(write(files(), at("new"), "new").ok());
  ASSERT_TRUE(write(files(), at("old"), "old").ok());
  ASSERT_TRUE(files().rename(at("new"), at("old")).ok());
  EXPECT_EQ(files().read(at("old"), 5).value(), "new");
  EXPECT_THAT(names(files(), at("")), ElementsAre("old"));
  ASSERT_TRUE(files().make_directories(at("full/x")).ok());
  ASSERT_TRUE(files().make_directories(at("tmp")).ok());
  EXPECT_EQ(files().rename(at("tmp"), at("full")).error().code, ErrorCode::kAlreadyExists);
}

TEST_P(AnyFiles, write_atomic_leaves_the_file_and_nothing_else) {
  ASSERT_TRUE(write_atomic(files(), at("f"), "one").ok());
  ASSERT_TRUE(write_atomic(files(), at("f"), "two").ok());
  EXPECT_EQ(files().read(at("f"), 9).value(), "two");
  EXPECT_THAT(names(files(), at("")), ElementsAre("f"));
  EXPECT_FALSE(write_atomic(files(), at("no/f"), "x").ok());
}

TEST(RealFiles, reads_files_of_unknown_length) {
  const auto status = real_files().read("/proc/self/status", 1 << 20);
  ASSERT_TRUE(status.ok());
  EXPECT_THAT(*status, HasSubstr("VmRSS"));
  EXPECT_EQ(real_files().read("/proc/self/status", 10).error().code, ErrorCode::kInvalidInput);
}

TEST(RealFiles, a_named_pipe_that_nobody_writes_into_is_empty_and_no_hang) {
  const std::string path = ::testing::TempDir() + "evenkeel-pipe-" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(real_files().read(path, 100).value(), "");
  EXPECT_EQ(real_files().read_range(path, 0, 4).error().code, ErrorCode::kCorruptData);
  ::unlink(path.c_str());
}

TEST(RealFiles, a_full_disk_is_an_io_error_with_its_reason) {
  const Status status = write(real_files(), "/dev/full", "x");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_EQ(status.error().message, "writing /dev/full: No space left on device");
}

TEST(FakeFiles, fails_the_nth_call_or_the_nth_change_once) {
  FakeFiles files;
  files.put("/f", "x");
  files.fail_call(2, {ErrorCode::kIo, "bad sector"});
  EXPECT_TRUE(files.read("/f", 9).ok());
  EXPECT_EQ(files.read("/f", 9).error().message, "reading /f: bad sector");
  EXPECT_TRUE(files.read("/f", 9).ok());
  files.fail_mutation(1, {ErrorCode::kIo, "disk full"});
  EXPECT_TRUE(files.read("/f", 9).ok());
  EXPECT_EQ(write(files, "/f", "abcd").error().message, "writing /f: disk full");
  EXPECT_EQ(files.read("/f", 9).value(), "ab");  // half done
  EXPECT_TRUE(write(files, "/f", "abcd").ok());
  EXPECT_EQ(files.calls(), 7);
  EXPECT_EQ(files.mutations(), 2);
}

TEST(FakeFiles, a_crash_forgets_names_that_were_not_synced) {
  FakeFiles files;
  ASSERT_TRUE(files.make_directories("/d").ok());
  ASSERT_TRUE(files.sync_directory("/").ok());
  ASSERT_TRUE(write(files, "/d/safe", "x").ok());
  ASSERT_TRUE(files.sync_directory("/d").ok());
  ASSERT_TRUE(write(files, "/d/lost", "x").ok());
  ASSERT_TRUE(files.rename("/d/safe", "/d/renamed").ok());
  files.crash();
  EXPECT_FALSE(files.read("/d/renamed", 9).ok());
  EXPECT_FALSE(files.exists("/d/renamed"));
  EXPECT_FALSE(write(files, "/d/safe", "y").ok());
  files.recover();
  EXPECT_THAT(files.paths(), ElementsAre("/d/safe"));
  EXPECT_EQ(files.read("/d/safe", 9).value(), "x");
}

// What write_atomic is for: whatever call the machine dies in, the file is the old one or the new one.
TEST(FakeFiles, write_atomic_survives_a_crash_at_every_change) {
  int changes = 0;
  for (int n = 1; n == 1 || n <= changes; ++n) {
    FakeFiles files;
    files.put("/d/f", "old content");
    if (n == 1) {
      FakeFiles trial;
      trial.put("/d/f", "old content");
      ASSERT_TRUE(write_atomic(trial, "/d/f", "new content").ok());
      changes = trial.mutations();
    }
    files.crash_at_mutation(n);
    EXPECT_FALSE(write_atomic(files, "/d/f", "new content").ok()) << n;
    files.recover();
    const std::string content = files.read("/d/f", 99).value();
    EXPECT_TRUE(content == "old content" || content == "new content") << n << ": " << content;
  }
  EXPECT_EQ(changes, 3);
}

TEST(FakeFiles, a_failed_write_atomic_takes_its_temporary_away) {
  FakeFiles files;
  files.put("/d/f", "old");
  files.fail_mutation(2, {ErrorCode::kIo, "no"});
  EXPECT_FALSE(write_atomic(files, "/d/f", "new").ok());
  EXPECT_THAT(files.paths(), ElementsAre("/d/f"));
}

}  // namespace
}  // namespace evenkeel::base
