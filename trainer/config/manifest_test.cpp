#include "trainer/config/manifest.h"

#include <gtest/gtest.h>

#include "base/files_fake.h"

namespace evenkeel::trainer {
namespace {

base::Json one(const std::string& yaml) {
  auto documents = parse_manifests(yaml);
  EXPECT_TRUE(documents.ok()) << documents.error().message;
  EXPECT_EQ(documents->size(), 1u);
  return documents->at(0);
}

std::string error_of(const std::string& yaml) {
  auto documents = parse_manifests(yaml);
  EXPECT_FALSE(documents.ok());
  return documents.ok() ? "" : documents.error().message;
}

TEST(Manifest, scalars_have_the_types_that_the_api_server_sees) {
  const base::Json json = one(
      "{a: 1, b: 1.5, c: yes, d: \"1\", e: true, f: null, g: 010, h: '', i: 1e-3, j: 0.4, k: 500m, l: .nan}");
  EXPECT_EQ(
      base::dump_json(json),
      R"({"a":1,"b":1.5,"c":"yes","d":"1","e":true,"f":null,"g":10,"h":"","i":0.001,"j":0.4,"k":"500m","l":".nan"})");
}

TEST(Manifest, nesting_and_several_documents_are_read) {
  auto documents = parse_manifests("a: [1, {b: [c, d]}]\n---\n\n---\nkind: X\n");
  ASSERT_TRUE(documents.ok());
  ASSERT_EQ(documents->size(), 2u);
  EXPECT_EQ(base::dump_json(documents->at(0)), R"({"a":[1,{"b":["c","d"]}]})");
}

TEST(Manifest, what_could_unfold_or_hide_is_refused_with_its_place) {
  EXPECT_NE(error_of("a: &x 1\nb: *x\n").find("line 1"), std::string::npos);
  EXPECT_NE(error_of("a: 1\nb: 2\na: 3\n").find("'a' stands twice"), std::string::npos);
  EXPECT_NE(error_of("<<: {a: 1}\n").find("merge keys"), std::string::npos);
  EXPECT_NE(error_of("a: [1, 2\n").find("line"), std::string::npos);
  EXPECT_NE(error_of(std::string(100, '[') + std::string(100, ']')).find("64 levels"), std::string::npos);
  EXPECT_NE(error_of(std::string(100000, '[')), "");  // the parser's own limit
  EXPECT_NE(error_of(std::string((1 << 20) + 1, ' ')).find("bytes"), std::string::npos);
  EXPECT_NE(error_of("? [a, b]\n: 1\n").find("key must be plain text"), std::string::npos);
}

TEST(Manifest, the_one_training_job_of_a_file_is_found) {
  base::FakeFiles files;
  files.put("/job.yaml", "kind: PersistentVolume\n---\nkind: TrainingJob\nmetadata: {name: x}\n");
  files.put("/none.yaml", "kind: Pod\n");
  auto job = load_manifest("/job.yaml", files);
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ((*job)["metadata"]["name"], "x");
  EXPECT_NE(load_manifest("/none.yaml", files).error().message.find("holds 0 objects"), std::string::npos);
  EXPECT_EQ(load_manifest("/missing.yaml", files).error().code, base::ErrorCode::kInvalidInput);
}

}  // namespace
}  // namespace evenkeel::trainer
