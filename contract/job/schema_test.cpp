#include "contract/job/schema.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <string>

#include "contract/job/defaults.h"
#include "contract/job/rule_message.h"
#include "contract/job/suggest.h"

namespace evenkeel::contract {
namespace {

// Calls visit(field, path, inside a type of Kubernetes' own) for every field of a tree.
template <class Visit>
void walk(const Field& field, const std::string& path, bool foreign, const Visit& visit) {
  visit(field, path, foreign);
  for (const Field& member : field.fields)
    walk(member, path + "." + member.name, foreign || field.foreign, visit);
  for (const Field& item : field.items)
    walk(item, path + "[]", foreign || field.foreign || field.type == FieldType::kMap, visit);
}

template <class Visit>
void walk_all(const Visit& visit) {
  walk(spec_schema(), "spec", false, visit);
  walk(status_schema(), "status", false, visit);
}

TEST(Schema, every_own_field_explains_itself_in_a_sentence) {
  walk_all([](const Field& field, const std::string& path, bool foreign) {
    if (foreign || field.forbidden) return;
    ASSERT_GE(field.description.size(), 8u) << path;
    EXPECT_TRUE(field.description.ends_with('.')) << path << ": " << field.description;
    EXPECT_EQ(field.description.find("{{"), std::string::npos)
        << path << ": a chart template would read this";
  });
}

TEST(Schema, every_array_and_map_of_the_spec_has_a_limit_and_every_text_too) {
  walk(spec_schema(), "spec", false, [](const Field& field, const std::string& path, bool) {
    if (field.type == FieldType::kArray || field.type == FieldType::kMap) {
      EXPECT_TRUE(field.max_items.has_value()) << path;
    }
    if (field.type == FieldType::kArray || field.type == FieldType::kMap) {
      EXPECT_EQ(field.items.size(), 1u) << path;
    }
    if (field.type == FieldType::kString && field.enum_values.empty()) {
      EXPECT_TRUE(field.max_length.has_value()) << path;
    }
    if (field.type == FieldType::kInteger || field.type == FieldType::kNumber) {
      EXPECT_TRUE(field.minimum && field.maximum) << path;
      // The API server compares an integer with a limit as 64-bit integers, and a larger limit wraps around.
      EXPECT_TRUE(std::abs(*field.minimum) < 9.2e18 && std::abs(*field.maximum) < 9.2e18) << path;
    }
  });
}

TEST(Schema, every_default_is_allowed_and_every_built_value_is_known) {
  walk(spec_schema(), "spec", false, [](const Field& field, const std::string& path, bool) {
    if (!field.default_value.is_null() && !field.built_values.empty()) {
      EXPECT_NE(std::find(field.built_values.begin(), field.built_values.end(), field.default_value),
                field.built_values.end())
          << path;
    }
    for (const Json& value : field.built_values) {
      if (field.enum_values.empty()) continue;
      EXPECT_NE(std::find(field.enum_values.begin(), field.enum_values.end(), value), field.enum_values.end())
          << path;
    }
    EXPECT_EQ(field.unbuilt_reason.empty(),
              field.unbuilt_reason.find("not built in this version") == std::string::npos)
        << path;
    if (!field.built_values.empty()) {
      EXPECT_FALSE(field.unbuilt_reason.empty()) << path;
    }
  });
}

TEST(Schema, every_pattern_is_anchored_so_that_both_languages_match_the_whole_text) {
  walk_all([](const Field& field, const std::string& path, bool) {
    if (field.pattern.empty()) return;
    EXPECT_EQ(field.pattern.front(), '^') << path;
    EXPECT_EQ(field.pattern.back(), '$') << path;
    EXPECT_NO_THROW(std::regex(field.pattern)) << path;
  });
}

TEST(Schema, every_rule_has_words_and_a_judge) {
  walk_all([](const Field& field, const std::string& path, bool) {
    for (const FieldRule& rule : field.rules) {
      EXPECT_TRUE(rule.holds) << path << ": " << rule.message;
      EXPECT_FALSE(rule.message.empty()) << path;
      EXPECT_EQ(rule.message.find('%'), std::string::npos)
          << path << ": % is a directive in messageExpression";
      EXPECT_EQ(rule.message.find('"'), std::string::npos) << path << ": a quote ends messageExpression";
      EXPECT_EQ(rule.transition, rule.cel.find("oldSelf") != std::string::npos) << path << ": " << rule.cel;
    }
  });
}

TEST(Schema, names_are_unique_within_an_object) {
  walk_all([](const Field& field, const std::string& path, bool) {
    for (std::size_t i = 0; i < field.fields.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) EXPECT_NE(field.fields[i].name, field.fields[j].name) << path;
    }
  });
}

TEST(Defaults, are_filled_in_below_objects_that_are_there_and_nowhere_else) {
  const Json filled = with_field_defaults(
      spec_schema(), Json({{"checkpoint", {{"path", "/c"}, {"keep", nullptr}}}, {"cleanup", nullptr}}));
  EXPECT_EQ(filled["checkpoint"]["keep"], 3);
  EXPECT_EQ(filled["checkpoint"]["onSuspend"], true);
  EXPECT_EQ(filled["cleanup"]["podPolicy"], "Running");
  EXPECT_FALSE(filled.contains("training"));
  EXPECT_FALSE(filled["cleanup"].contains("ttlSecondsAfterFinished"));
}

TEST(Messages, placeholders_take_values_and_lengths) {
  const FieldRule rule{.cel = "", .message = "{a.b} has {#a.b} letters in {}", .holds = {}};
  EXPECT_EQ(rule_message(rule, Json({{"a", {{"b", "xyz"}}}})),
            "xyz has 3 letters in {\"a\":{\"b\":\"xyz\"}}");
}

TEST(Messages, long_values_are_cut_between_characters) {
  const std::string cut = cut_text(std::string(79, 'a') + "\xC3\xA4\xC3\xA4");
  EXPECT_EQ(cut, std::string(79, 'a') + "...");
  EXPECT_EQ(number_text(4096), "4096");
  EXPECT_EQ(number_text(0.75), "0.75");
  EXPECT_EQ(number_text(1e38), "1e+38");
}

TEST(Suggest, the_near_name_is_found_and_a_far_one_is_not) {
  const std::vector<std::string> known{"epochs", "steps", "batchSize", "perReplica"};
  EXPECT_EQ(nearest_name("epocs", known), "epochs");
  EXPECT_EQ(nearest_name("batchsize", known), "batchSize");
  EXPECT_EQ(nearest_name("per_replica", known), "perReplica");
  EXPECT_EQ(nearest_name("xyz", known), "");
  EXPECT_EQ(nearest_name("", known), "");
}

}  // namespace
}  // namespace evenkeel::contract
