#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace evenkeel::base {
namespace {

using testing::HasSubstr;

std::string refusal(std::string_view text, JsonLimits limits = {}) {
  const auto result = parse_json(text, limits);
  if (result.ok()) return "accepted";
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidInput);
  return result.error().message;
}

TEST(Json, reads_and_writes_every_kind_of_value_in_order) {
  const std::string text =
      R"({"z":1,"a":[true,false,null,-2,1.5,"x"],"m":{"big":18446744073709551615,"e":{}},"l":[]})";
  const auto value = parse_json(text);
  ASSERT_TRUE(value.ok()) << value.error().message;
  EXPECT_EQ(dump_json(*value), text);
  EXPECT_EQ(parse_json(" 7 ").value(), Json(7));
  EXPECT_EQ(parse_json("\"\\u00e9\\ud83d\\ude00\"").value().get<std::string>(), "é😀");
}

TEST(Json, arrays_of_containers_survive_their_own_growth) {
  std::string text = "[";
  for (int i = 0; i < 1000; ++i)
    text += (i != 0 ? "," : "") + std::string("{\"a\":[") + std::to_string(i) + "]}";
  const Json value = parse_json(text + "]").value();
  ASSERT_EQ(value.size(), 1000u);
  EXPECT_EQ(value[999]["a"][0], 999);
}

TEST(Json, refusals_name_the_byte) {
  EXPECT_THAT(refusal(R"({"a":1,"a":2})"), HasSubstr("byte 10: key \"a\" is there twice"));
  EXPECT_THAT(refusal(R"({"a":1} x)"), HasSubstr("byte 8"));
  EXPECT_THAT(refusal(""), HasSubstr("byte 0"));
  EXPECT_THAT(refusal(R"({"a":)"), HasSubstr("byte 5"));
  EXPECT_THAT(refusal("{\"a\":\"\xff\"}"), HasSubstr("byte 6"));
  EXPECT_THAT(refusal("[1,\n2,]"), HasSubstr("byte 6"));
  EXPECT_THAT(refusal(std::string("{}\0{}", 5)), HasSubstr("byte 2: a NUL byte"));
}

TEST(Json, refuses_what_only_looks_like_json) {
  for (const char* text : {"{'a':1}", "[1,]", "[01]", "NaN", "[1e999]", "\"\\ud800\"", "{\"a\" 1}", "[+1]",
                           "// x\n1", "\"\t\"", "tru", "{1:2}"}) {
    EXPECT_NE(refusal(text), "accepted") << text;
  }
}

TEST(Json, a_long_bad_token_is_not_repeated_in_full) {
  EXPECT_LT(refusal("[" + std::string(1 << 20, 'x') + "]").size(), 300u);
  EXPECT_LT(refusal("[\"" + std::string(1 << 20, 'x')).size(), 300u);
}

TEST(Json, depth_and_length_are_capped_before_anything_is_built) {
  JsonLimits limits{.max_bytes = 100, .max_depth = 3};
  EXPECT_TRUE(parse_json("[[[]]]", limits).ok());
  EXPECT_THAT(refusal("[[[[]]]]", limits), HasSubstr("deeper than 3"));
  EXPECT_THAT(refusal(std::string(101, ' '), limits), HasSubstr("101 bytes is longer than 100"));
  EXPECT_THAT(refusal(std::string(1 << 20, '[')), HasSubstr("byte 65: nested deeper than 64"));
}

TEST(Json, objects_with_very_many_keys_parse_in_linear_time) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += (i != 0 ? ",\"" : "\"") + std::to_string(i) + "\":0";
  EXPECT_EQ(parse_json(text + "}").value().size(),
            200'000u);  // minutes, if each key were looked for from the front
  EXPECT_THAT(refusal(text + ",\"7\":0}"), HasSubstr("key \"7\" is there twice"));
}

TEST(Json, dump_never_throws) {
  EXPECT_EQ(dump_json(Json("\xff")), "\"\xef\xbf\xbd\"");
  EXPECT_EQ(dump_json(Json(std::nan(""))), "null");
  EXPECT_EQ(dump_json(Json{{"a", 1}}, 2), "{\n  \"a\": 1\n}");
}

TEST(Json, optional_reads_fall_back_when_absent_null_or_of_another_type) {
  const Json value =
      parse_json(R"({"s":"x","i":3,"d":1.5,"b":true,"n":null,"huge":18446744073709551615})").value();
  EXPECT_EQ(string_at(value, "s"), "x");
  EXPECT_EQ(string_at(value, "i", "fallback"), "fallback");
  EXPECT_EQ(string_at(value, "n", "fallback"), "fallback");
  EXPECT_EQ(int_at(value, "i"), 3);
  EXPECT_EQ(int_at(value, "d", 9), 9);
  EXPECT_EQ(int_at(value, "huge", 9), 9);
  EXPECT_EQ(int_at(value, "absent", 9), 9);
  EXPECT_EQ(double_at(value, "d"), 1.5);
  EXPECT_EQ(double_at(value, "i"), 3.0);
  EXPECT_TRUE(bool_at(value, "b"));
  EXPECT_TRUE(bool_at(value, "s", true));
  EXPECT_EQ(int_at(Json(5), "i", 9), 9);
}

TEST(Json, paths_end_in_an_empty_object_where_nothing_is) {
  const Json pod = parse_json(R"({"metadata":{"name":"p","labels":null},"list":[1]})").value();
  EXPECT_EQ(at_path(pod, {"metadata", "name"}), Json("p"));
  EXPECT_TRUE(at_path(pod, {"metadata", "labels"}).empty());
  EXPECT_TRUE(at_path(pod, {"metadata", "name", "deeper"}).is_object());
  EXPECT_TRUE(child(pod, "absent").is_object());
  EXPECT_EQ(child(pod, "list").size(), 1u);
}

}  // namespace
}  // namespace evenkeel::base
