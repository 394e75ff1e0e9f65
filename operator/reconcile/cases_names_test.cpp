// Operator cases: names and admission, as far as they are decided before anything is sent.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "contract/job/names.h"
#include "operator/reconcile/cases_support.h"
#include "operator/render/objects.h"
#include "operator/render/pod.h"

namespace evenkeel::oper {
namespace {

using contract::Role;
constexpr std::size_t kDnsLabel = 63;

Json elastic_manifest(std::size_t name_length, const std::string& name_space) {
  Json object = manifest_of(contract::short_manifest()["spec"]);
  object["metadata"] = {{"name", std::string(name_length, 'x')},
                        {"namespace", name_space},
                        {"uid", "0f8fad5b-d9cb-469f-a165-70867728950e"}};
  object["spec"]["workers"] = {{"replicas", 4096}, {"minReplicas", 1}, {"maxReplicas", 4096}};
  object["spec"]["training"]["batchSize"]["global"] = 65536;
  return object;
}

// Everything that the job owns; of its workers the first and the last.
std::vector<Json> children_of(const contract::TrainingJob& job) {
  const JobPlan plan = make_plan(job, 1, 1);
  const PodDefaults defaults{"trainer:1", Json::object()};
  return {render_service(job, plan),
          render_config_map(job, plan),
          render_wanted_map(job, plan),
          render_secret(job, plan),
          render_pod(job, plan, plan.pods.front(), defaults),
          render_pod(job, plan, plan.pods[1], defaults),
          render_pod(job, plan, plan.pods.back(), defaults)};
}

void expect_names_fit(const contract::TrainingJob& job) {
  const std::string& name = job.meta.name;
  for (const Json& child : children_of(job)) {
    const std::string kind = base::string_at(child, "kind");
    const std::size_t limit = kind == "Pod" ? 253 : kDnsLabel;
    EXPECT_LE(name_of(child).size(), limit) << kind;
    if (kind != "Pod") continue;
    EXPECT_LE(base::string_at(child["spec"], "hostname").size(), kDnsLabel);
    EXPECT_LE(base::string_at(child["spec"], "subdomain").size(), kDnsLabel);
  }
  for (const Role role : {Role::kWorker, Role::kReducer, Role::kServer})
    EXPECT_LE(contract::host_name(name, role, 4095).size(), kDnsLabel);
  EXPECT_LE(contract::host_name(name, Role::kCoordinator, 0).size(), kDnsLabel);
}

TEST(OperatorCases, OP_01_name_too_long_for_a_child) {
  for (std::size_t length = 40; length <= 63; ++length) {
    const Json object = elastic_manifest(length, "a");
    const std::string errors = errors_of(object);
    if (errors.empty()) {
      expect_names_fit(contract::decode_job(object).value());
      continue;
    }
    EXPECT_TRUE(contains(errors, "metadata.name")) << errors;
    EXPECT_TRUE(contains(errors, std::to_string(length))) << errors;
    EXPECT_TRUE(contains(errors, std::to_string(contract::kMaxJobNameLength))) << errors;
    EXPECT_GT(contract::host_name(std::string(length, 'x'), Role::kCoordinator, 0).size(), kDnsLabel)
        << length << " is refused for nothing";
  }
  EXPECT_EQ(errors_of(elastic_manifest(49, "a")), "");
  EXPECT_NE(errors_of(elastic_manifest(50, "a")), "") << "t-coordinator-0 would be too long";
  EXPECT_NE(errors_of(elastic_manifest(51, "a")), "");
}

TEST(OperatorCases, OP_02_name_too_long_for_a_child_label_value) {
  const std::string name_space(63, 'n');
  const Json object = elastic_manifest(contract::kMaxJobNameLength, name_space);
  ASSERT_EQ(errors_of(object), "");
  const std::regex label("(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?");
  bool has_long_address = false;
  for (const Json& child : children_of(contract::decode_job(object).value())) {
    for (const auto& [key, value] : child["metadata"]["labels"].items()) {
      const std::string text = value.get<std::string>();
      EXPECT_LE(text.size(), kDnsLabel) << key;
      EXPECT_TRUE(std::regex_match(text, label)) << key << "=" << text;
      EXPECT_FALSE(contains(text, name_space)) << "a host name in the label " << key;
    }
    if (base::string_at(child, "kind") != "Pod") continue;
    for (const Json& variable : child["spec"]["containers"][0]["env"])
      has_long_address |= contains(base::string_at(variable, "value"), name_space + ".svc");
    for (const Json& port : child["spec"]["containers"][0]["ports"])
      EXPECT_LE(base::string_at(port, "name").size(), 15u);
  }
  EXPECT_TRUE(has_long_address) << "in the environment they are";
}

// The event of OP-03: what the API server refused is told once, however often it is tried.
TEST(OperatorCases, OP_03_a_refused_child_is_one_warning) {
  ClusterFake c;
  c.refuse_creates["Pod/t-worker-1-1"] = "exceeded quota: team, requested: pods=1, limited: pods=2";
  int tries = 0;
  for (c.settle(); c.now < base::parse_rfc3339("2026-01-01T00:00:30Z").value(); ++tries) {
    const auto wait = c.step().requeue_after;
    ASSERT_TRUE(wait.has_value());
    c.now += *wait;
    c.settle();
  }
  EXPECT_LE(tries, 20);
  const auto told = std::ranges::count_if(c.events, [](const EventNote& event) { return event.warning; });
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(c.has_event("QuotaExceeded"));
  c.refuse_creates.clear();
  c.advance(30).settle();
  EXPECT_EQ(c.pods.size(), 5u);
  EXPECT_EQ(c.broken, std::vector<std::string>());
}

}  // namespace
}  // namespace evenkeel::oper
