#include "operator/crd/crd.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "contract/job/schema.h"
#include "operator/crd/yaml.h"

namespace evenkeel::oper {
namespace {

using base::Json;

const Json& version_of(const Json& crd) {
  return crd["spec"]["versions"][0];
}
const Json& schema_of(const Json& crd) {
  return version_of(crd)["schema"]["openAPIV3Schema"];
}

// Calls visit(schema, path) for every schema of a tree.
template <class Visit>
void walk(const Json& schema, const std::string& path, const Visit& visit) {
  visit(schema, path);
  for (const auto& item : base::child(schema, "properties").items())
    walk(item.value(), path + "." + item.key(), visit);
  if (schema.contains("items")) walk(schema["items"], path + "[]", visit);
  if (schema.contains("additionalProperties")) walk(schema["additionalProperties"], path + "{}", visit);
}

TEST(Crd, has_the_names_that_users_type) {
  const Json crd = make_crd();
  EXPECT_EQ(crd["metadata"]["name"], "trainingjobs.training.evenkeel.dev");
  EXPECT_EQ(crd["spec"]["names"]["shortNames"][0], "tjob");
  EXPECT_EQ(crd["spec"]["names"]["categories"], Json::array({"training"}));
  EXPECT_EQ(version_of(crd)["name"], "v1alpha1");
  EXPECT_TRUE(version_of(crd)["subresources"].contains("status"));
  EXPECT_EQ(version_of(crd)["subresources"]["scale"]["specReplicasPath"], ".spec.workers.replicas");
}

TEST(Crd, prints_the_columns_in_their_order) {
  const Json crd = make_crd();
  std::string always;
  std::string wide;
  for (const Json& column : version_of(crd)["additionalPrinterColumns"]) {
    (column.contains("priority") ? wide : always) += column["name"].get<std::string>() + " ";
  }
  EXPECT_EQ(always, "Status Progress Ready Samples/s Imbalance Restarts ETA Age ");
  EXPECT_EQ(wide, "Verdict Efficiency Loss Straggler Queue ");
}

TEST(Crd, every_column_shows_a_field_that_exists) {
  const Json crd = make_crd();
  std::set<std::string> paths{".metadata.creationTimestamp"};
  walk(schema_of(crd), "", [&](const Json&, const std::string& path) { paths.insert(path); });
  for (const Json& column : version_of(crd)["additionalPrinterColumns"]) {
    EXPECT_TRUE(paths.contains(column["jsonPath"].get<std::string>())) << column["jsonPath"];
  }
}

TEST(Crd, is_structural_every_schema_has_a_type_or_is_a_quantity) {
  walk(schema_of(make_crd()), "", [](const Json& schema, const std::string& path) {
    EXPECT_TRUE(schema.contains("type") || schema.contains("x-kubernetes-int-or-string")) << path;
    if (base::string_at(schema, "type") == "array") {
      EXPECT_TRUE(schema.contains("items")) << path;
    }
  });
}

TEST(Crd, a_rule_guards_every_member_that_may_be_absent) {
  // A rule that errors would block the status too: whatever a rule reads below self must have a default or be
  // asked for with has() in the same rule.
  walk(schema_of(make_crd()), "", [](const Json& schema, const std::string& path) {
    for (const Json& rule : base::child(schema, "x-kubernetes-validations")) {
      const std::string cel = rule["rule"].get<std::string>();
      for (const auto& item : base::child(schema, "properties").items()) {
        const std::string use = "self." + item.key();
        if (cel.find(use + ".") == std::string::npos && cel.find(use + " ") == std::string::npos) continue;
        const bool always = item.value().contains("default");
        EXPECT_TRUE(always || item.key() == "metadata" || cel.find("has(" + use + ")") != std::string::npos)
            << path << ": " << cel;
      }
    }
  });
}

// Pruning would drop an unknown name in silence, before any rule sees it.
TEST(Crd, every_dangerous_name_is_declared_with_a_rule_that_is_false_wherever_a_job_speaks_of_pods) {
  int places = 0;
  walk(schema_of(make_crd()), "", [&](const Json& schema, const std::string& path) {
    if (!path.ends_with(".podOptions") || !schema.contains("properties")) return;
    ++places;
    for (const char* name :
         {"hostNetwork", "hostPID", "hostIPC", "hostUsers", "hostPort", "hostAliases", "nodeName", "containers",
          "initContainers", "ephemeralContainers", "privileged", "allowPrivilegeEscalation", "capabilities", "ports",
          "automountServiceAccountToken", "serviceAccount", "schedulerName", "shareProcessNamespace"}) {
      const Json& rules = base::at_path(schema, {"properties", name, "x-kubernetes-validations"});
      ASSERT_EQ(rules.size(), 1u) << path << "." << name;
      EXPECT_EQ(rules[0]["rule"], "false") << path << "." << name;
      EXPECT_NE(rules[0]["message"].get<std::string>().find(name), std::string::npos) << path;
    }
    for (const char* source : {"hostPath", "projected", "downwardAPI", "nfs", "iscsi", "flexVolume", "gitRepo", "image"}) {
      const Json& rules = base::at_path(schema, {"properties", "volumes", "items", "properties", source,
                                                 "x-kubernetes-validations"});
      ASSERT_EQ(rules.size(), 1u) << path << " " << source;
      EXPECT_EQ(rules[0]["rule"], "false") << path << " " << source;
    }
  });
  EXPECT_EQ(places, 3) << "workers, overrides, coordinator";
}

TEST(Crd, every_field_that_is_not_built_is_refused_by_the_server_too) {
  walk(schema_of(make_crd()), "", [](const Json& schema, const std::string& path) {
    if (base::string_at(schema, "description").find("not built in this version") == std::string::npos) return;
    EXPECT_TRUE(schema.contains("x-kubernetes-validations") || schema.contains("maxProperties")) << path;
  });
}

TEST(Crd, is_small_enough_for_a_chart_and_the_same_every_time) {
  const std::string text = crd_yaml();
  EXPECT_LT(text.size(), 200000u);
  EXPECT_EQ(text, crd_yaml());
  EXPECT_EQ(text.substr(0, 18), "# Generated from c");
  EXPECT_EQ(text.find("{{"), std::string::npos) << "a chart template would read this";
}

TEST(Yaml, writes_blocks_and_keeps_what_is_small_on_one_line) {
  const std::string text(180, 'x');
  const Json value = {
      {"a", "word"},
      {"b", "two words"},
      {"on", true},
      {"empty", Json::array()},
      {"small", {{"type", "string"}, {"enum", Json::array({"Off", "x"})}}},
      {"list", Json::array({"x", 1, Json({{"k", "v"}, {"l", {{"m", {{"n", text}}}}}}), Json::object()})},
      {"map", {{"deep", {{"er", nullptr}}}}},
      {"long", {{"deep", {{"er", text}}}}},
      {"q", "say \"it\"\n"}};
  EXPECT_EQ(to_yaml(value),
            "a: word\n"
            "b: \"two words\"\n"
            "\"on\": true\n"
            "empty: []\n"
            "small: {type: string, enum: [\"Off\", x]}\n"
            "list:\n"
            "- x\n"
            "- 1\n"
            "- k: v\n"
            "  l:\n"
            "    m:\n"
            "      \"n\": " +
                text +
                "\n"
                "- {}\n"
                "map: {deep: {er: null}}\n"
                "long:\n"
                "  deep:\n"
                "    er: " +
                text +
                "\n"
            "q: \"say \\\"it\\\"\\n\"\n");
}

TEST(Yaml, words_that_yaml_takes_for_something_else_are_quoted) {
  for (const char* word : {"true", "no", "Off", "null", "1e3", "", "-x", "a: b", "#c", "yes", "v1alpha1"}) {
    const std::string text = to_yaml(Json(word));
    EXPECT_EQ(text.front() == '"', std::string(word) != "v1alpha1") << text;
  }
}

}  // namespace
}  // namespace evenkeel::oper
