// The corpus of tests/manifests, judged by C++. tests/crd/crd_test.sh lets a real API server judge the same
// files.
//   valid/X.json      accepted at creation
//   invalid/X.json    refused at creation; metadata.annotations "expect.error/path" says where
//   X.old.json, X.new.json   the old one is valid, the change to the new one is accepted or refused
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "contract/job/validate.h"

namespace evenkeel::contract {
namespace {

namespace fs = std::filesystem;

Json read_manifest(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  auto parsed = base::parse_json(text.str());
  EXPECT_TRUE(parsed.ok()) << path << ": " << (parsed.ok() ? "" : parsed.error().message);
  return parsed.ok() ? *parsed : Json();
}

// All manifests of a folder but the *.old.json, which are read beside their *.new.json.
std::vector<fs::path> manifests(const std::string& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry :
       fs::directory_iterator(fs::path(EVENKEEL_SOURCE_DIR) / "tests/manifests" / folder)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".json") && !name.ends_with(".old.json")) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Json old_of(const fs::path& path) {
  std::string name = path.string();
  const std::string suffix = ".new.json";
  if (!name.ends_with(suffix)) return Json();
  Json old_object = read_manifest(name.replace(name.size() - suffix.size(), suffix.size(), ".old.json"));
  EXPECT_TRUE(validate_job(old_object).empty())
      << name << " must be valid: " << validate_job(old_object).front().text();
  return old_object;
}

std::string texts(const std::vector<FieldError>& errors) {
  std::string all;
  for (const FieldError& error : errors) all += error.text() + "\n";
  return all;
}

TEST(Corpus, every_valid_manifest_is_accepted_and_decodes) {
  const auto paths = manifests("valid");
  EXPECT_GE(paths.size(), 40u);
  for (const fs::path& path : paths) {
    const Json object = read_manifest(path);
    const auto errors = validate_job(object, old_of(path));
    EXPECT_TRUE(errors.empty()) << path.filename() << "\n" << texts(errors);
    EXPECT_TRUE(decode_job(object).ok()) << path.filename();
  }
}

TEST(Corpus, every_invalid_manifest_is_refused_at_the_expected_path) {
  const auto paths = manifests("invalid");
  EXPECT_GE(paths.size(), 180u);
  for (const fs::path& path : paths) {
    const Json object = read_manifest(path);
    const std::string expected =
        base::string_at(base::at_path(object, {"metadata", "annotations"}), "expect.error/path");
    ASSERT_FALSE(expected.empty()) << path.filename();
    const auto errors = validate_job(object, old_of(path));
    ASSERT_FALSE(errors.empty()) << path.filename() << " is accepted";
    EXPECT_TRUE(
        std::any_of(errors.begin(), errors.end(), [&](const FieldError& e) { return e.path == expected; }))
        << path.filename() << " expects " << expected << "\n"
        << texts(errors);
    EXPECT_LE(errors.size(), 2u) << path.filename() << ": one mistake, one message\n" << texts(errors);
  }
}

TEST(Corpus, a_message_is_a_short_sentence_that_says_what_to_do) {
  for (const fs::path& path : manifests("invalid")) {
    for (const FieldError& error : validate_job(read_manifest(path), old_of(path))) {
      EXPECT_GE(error.message.size(), 20u) << error.text();
      EXPECT_LE(error.message.size(), 400u) << error.text();
      EXPECT_EQ(error.message.find("{}"), std::string::npos) << error.text();
      EXPECT_EQ(error.message.find("  "), std::string::npos) << error.text();
    }
  }
}

}  // namespace
}  // namespace evenkeel::contract
