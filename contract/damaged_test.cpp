// Damaged files of tests/data/damaged/{manifest,trainer_config}, each with what the reader says of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "contract/checkpoint_format.h"
#include "contract/trainer_config.h"

namespace evenkeel::contract {
namespace {

const std::string kFolder = EVENKEEL_SOURCE_DIR "/tests/data/damaged/";

using Table = std::vector<std::pair<std::string, std::string>>;  // sorted by name

const Table kManifests = {
    {"consumed-overflows.json", "manifest.consumed: out of range"},
    {"cut.json", "not valid JSON at byte 77"},
    {"file-outside.json", "'../../etc/passwd' is not a plain file name"},
    {"no-cursor.json", "manifest.cursor"},
    {"of-a-later-version.json", "manifest.format: is 2; this version reads format 1"},
    {"size-as-text.json", "manifest.files[0].size"},
    {"step-below-zero.json", "manifest.step"},
};

const Table kConfigurations = {
    {"cut.json", "not valid JSON at byte 100"},
    {"of-a-later-version.json", "version is 2, this trainer reads version 1"},
    {"other-number-of-ranks.json", "ranks is 3, but spec.workers asks for 4"},
    {"port-of-a-million.json", "coordinator.port"},
    {"spec-is-text.json", "spec"},
    {"spec-without-a-model.json", "spec.model"},
    {"unknown-member.json", "rank"},
};

template <class Decode>
void check(const std::string& folder, const Table& table, Decode decode) {
  const auto entries = base::real_files().list(kFolder + folder);
  ASSERT_TRUE(entries.ok()) << entries.error().message;
  ASSERT_EQ(entries->size(), table.size()) << "a file that the table does not know, or the reverse";
  for (std::size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ((*entries)[i].name, table[i].first);
    const auto text = base::real_files().read(kFolder + folder + "/" + table[i].first, 1 << 20);
    ASSERT_TRUE(text.ok()) << text.error().message;
    const auto json = base::parse_json(*text);
    const base::Status status = json.ok() ? decode(*json) : base::Status(json.error());
    ASSERT_FALSE(status.ok()) << table[i].first;
    EXPECT_THAT(status.error().message, testing::HasSubstr(table[i].second)) << table[i].first;
  }
}

TEST(DamagedManifest, each_is_refused_with_its_reason) {
  check("manifest", kManifests, [](const Json& json) -> base::Status {
    const auto decoded = decode_manifest(json);
    if (decoded.ok()) return {};
    EXPECT_EQ(decoded.error().code, base::ErrorCode::kCorruptData);
    return decoded.error();
  });
}

TEST(DamagedTrainerConfig, each_is_refused_with_its_reason) {
  check("trainer_config", kConfigurations, [](const Json& json) -> base::Status {
    const auto decoded = decode_trainer_config(json);
    return decoded.ok() ? base::Status() : base::Status(decoded.error());
  });
}

}  // namespace
}  // namespace evenkeel::contract
