// examples/broken: what the comment of each manifest says is what the rules say here, before any cluster is
// asked. tests/rights/rights_test.sh asks a real API server and the operator the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "contract/job/validate.h"
#include "trainer/config/manifest.h"

namespace evenkeel::trainer {
namespace {

namespace fs = std::filesystem;

// "# kind: words" lines at the head of a manifest.
std::map<std::string, std::string> comments(const fs::path& path) {
  std::map<std::string, std::string> found;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line) && line.starts_with("# ");) {
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) found[line.substr(2, colon - 2)] = line.substr(colon + 2);
  }
  return found;
}

std::string all_errors(const base::Json& object) {
  std::string text;
  for (const contract::FieldError& error : contract::validate_job(object)) text += error.text() + "\n";
  return text;
}

TEST(BrokenExamples, each_says_in_its_comment_what_is_wrong_with_it) {
  int refused = 0, total = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(EVENKEEL_SOURCE_DIR) / "examples/broken")) {
    if (entry.path().extension() != ".yaml") continue;
    ++total;
    const auto object = load_manifest(entry.path(), base::real_files());
    ASSERT_TRUE(object.ok()) << entry.path() << ": " << object.error().message;
    const std::string errors = all_errors(*object);
    auto said = comments(entry.path());
    const std::string words = said.contains("locally") ? said["locally"] : said["says"];
    if (words.empty()) {  // right in itself; the cluster or the data say no
      EXPECT_EQ(errors, "") << entry.path();
      EXPECT_TRUE(said.contains("status") || said.contains("as dev") || said.contains("ends 65")) << entry.path();
      continue;
    }
    ++refused;
    EXPECT_NE(errors.find(words), std::string::npos) << entry.path() << "\n  comment: " << words << "\n  rules: " << errors;
    EXPECT_LE(std::count(errors.begin(), errors.end(), '\n'), 2) << entry.path() << ": one mistake\n" << errors;
  }
  EXPECT_GE(total, 12);
  EXPECT_GE(refused, 12);
}

}  // namespace
}  // namespace evenkeel::trainer
