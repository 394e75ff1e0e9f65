#include "base/json_reader.h"

#include <gtest/gtest.h>

#include <cmath>

namespace evenkeel::base {
namespace {

Json parse(std::string_view text) {
  return parse_json(text).value();
}

std::string errors(JsonReader& reader) {
  const Status status = reader.finish();
  if (status.ok()) return "";
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidInput);
  return status.error().message;
}

TEST(JsonReader, reads_members_of_every_type) {
  const Json value = parse(R"({"s":"x","b":true,"i":7,"n":2.5,"e":"Ring","o":{"k":1},"a":[{"k":1},{"k":2}],
                               "ss":["p","q"],"ns":[1,2.5],"any":[null]})");
  JsonReader reader(value, "spec");
  EXPECT_EQ(reader.string("s"), "x");
  EXPECT_TRUE(reader.boolean("b"));
  EXPECT_EQ(reader.integer("i", 0, 1, 10), 7);
  EXPECT_EQ(reader.number("n", 0), 2.5);
  EXPECT_EQ(reader.one_of("e", {"Tree", "Ring"}, 0), 1);
  EXPECT_EQ(reader.object("o").integer("k", 0), 1);
  int sum = 0;
  for (JsonReader& item : reader.array("a")) sum += static_cast<int>(item.integer("k", 0));
  EXPECT_EQ(sum, 3);
  EXPECT_EQ(reader.strings("ss"), (std::vector<std::string>{"p", "q"}));
  EXPECT_EQ(reader.numbers("ns"), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(reader.any("any").size(), 1u);
  EXPECT_EQ(errors(reader), "");
}

TEST(JsonReader, absent_and_null_are_the_fallback) {
  const Json value = parse(R"({"s":null})");
  JsonReader reader(value, "spec");
  EXPECT_FALSE(reader.has("s"));
  EXPECT_EQ(reader.string("s", "fallback"), "fallback");
  EXPECT_EQ(reader.integer("i", 4), 4);
  EXPECT_EQ(reader.one_of("e", {"A"}, -1), -1);
  EXPECT_TRUE(reader.any("x").is_null());
  EXPECT_TRUE(reader.array("a").empty());
  EXPECT_EQ(reader.object("o").string("k", "deep"), "deep");
  EXPECT_EQ(errors(reader), "");
}

TEST(JsonReader, wrong_types_name_path_and_value) {
  const Json value = parse(R"({"s":1,"b":"yes","i":1.5,"n":"x","o":[],"a":{},"ss":["p",2]})");
  JsonReader reader(value, "spec");
  reader.string("s");
  reader.boolean("b");
  EXPECT_EQ(reader.integer("i", 3), 3);
  reader.number("n", 0);
  reader.object("o");
  reader.array("a");
  reader.strings("ss");
  EXPECT_EQ(errors(reader),
            "spec.s: must be text, is 1; spec.b: must be true or false, is \"yes\"; "
            "spec.i: must be a whole number, is 1.5; spec.n: must be a finite number, is \"x\"; "
            "spec.o: must be an object, is a list; spec.a: must be a list, is an object; "
            "spec.ss[1]: must be text, is 2");
}

TEST(JsonReader, ranges_are_said_as_they_are) {
  const Json value = parse(R"({"a":0,"b":11,"c":-5,"d":18446744073709551615})");
  JsonReader reader(value, "spec");
  EXPECT_EQ(reader.integer("a", 3, 1), 3);
  reader.integer("b", 3, 1, 10);
  reader.integer("c", 0, std::numeric_limits<std::int64_t>::min(), -6);
  reader.integer("d", 0, 0);
  EXPECT_EQ(errors(reader),
            "spec.a: must be at least 1, is 0; spec.b: must be between 1 and 10, is 11; "
            "spec.c: must be at most -6, is -5; spec.d: must be at least 0, is 18446744073709551615");
}

TEST(JsonReader, unknown_keys_are_errors_with_a_guess) {
  const Json value = parse(R"({"workers":{"replcas":4},"zebra":1,"list":[{"Name":"x"}]})");
  JsonReader reader(value, "spec");
  reader.object("workers").integer("replicas", 1);
  for (JsonReader& item : reader.array("list")) item.string("name");
  EXPECT_EQ(errors(reader),
            "spec.workers.replcas: unknown field, did you mean \"replicas\"?; "
            "spec.list[0].Name: unknown field, did you mean \"name\"?; spec.zebra: unknown field");
}

TEST(JsonReader, an_open_object_takes_any_key) {
  const Json value = parse(R"({"labels":{"a":"b"}})");
  JsonReader reader(value, "spec");
  reader.object("labels").allow_unknown();
  EXPECT_EQ(errors(reader), "");
}

TEST(JsonReader, enums_list_their_names_and_guess) {
  const Json value = parse(R"({"a":"rings","b":7})");
  JsonReader reader(value, "spec");
  EXPECT_EQ(reader.one_of("a", {"Tree", "Ring"}, 0), 0);
  reader.one_of("b", {"Tree", "Ring"}, 0);
  EXPECT_EQ(errors(reader),
            "spec.a: must be one of Tree, Ring, is \"rings\", did you mean \"Ring\"?; "
            "spec.b: must be one of Tree, Ring, is 7");
}

TEST(JsonReader, required_fields_and_own_errors_share_the_list) {
  const Json value = parse(R"({"a":1})");
  JsonReader reader(value, "spec");
  reader.require("a").integer("a", 0);
  reader.require("b").string("b");
  reader.fail("a", "must be odd");
  reader.fail("", "is empty");
  EXPECT_EQ(errors(reader), "spec.b: is required, but it is not there; spec.a: must be odd; spec: is empty");
}

TEST(JsonReader, a_document_that_is_no_object_is_one_error) {
  const Json value = parse("[1]");
  JsonReader reader(value, "job.json");
  EXPECT_EQ(reader.string("a", "x"), "x");
  EXPECT_EQ(errors(reader), "job.json: must be an object, is a list");
}

TEST(JsonReader, lists_and_messages_are_capped) {
  Json value = parse(R"({"many":[1,2,3]})");
  value["long"] = std::string(500, 'x');
  value["nan"] = std::nan("");
  JsonReader reader(value, "spec");
  EXPECT_TRUE(reader.numbers("many", 2).empty());
  reader.integer("long", 0);
  reader.number("nan", 0);
  const std::string message = errors(reader);
  EXPECT_NE(message.find("spec.many: has 3 items, at most 2 are allowed"), std::string::npos) << message;
  EXPECT_NE(message.find("spec.nan: must be a finite number"), std::string::npos) << message;
  EXPECT_LT(message.size(), 250u);

  Json crowd;
  for (int i = 0; i < 100; ++i) crowd["unknown" + std::to_string(i)] = i;
  JsonReader other(crowd, "spec");
  EXPECT_NE(errors(other).find("; and 80 more"), std::string::npos);
}

}  // namespace
}  // namespace evenkeel::base
