#include "tests/support/fault_proxy/plan.h"

#include <gtest/gtest.h>

namespace evenkeel::support {
namespace {

using base::Json;

TEST(FaultPlan, a_request_is_known_by_verb_kind_and_name) {
  struct Row {
    std::string method, target, body, verb, kind, name_space, name;
  };
  const std::vector<Row> rows = {
      {"GET", "/api/v1/pods?limit=500", "", "list", "pods", "", ""},
      {"GET", "/api/v1/pods?watch=true&resourceVersion=7", "", "watch", "pods", "", ""},
      {"GET", "/api/v1/pods?resourceVersion=7&watch=1", "", "watch", "pods", "", ""},
      {"GET", "/api/v1/pods?nowatch=1", "", "list", "pods", "", ""},
      {"GET", "/api/v1/namespaces/a/pods/b", "", "get", "pods", "a", "b"},
      {"POST", "/api/v1/namespaces/a/pods", R"({"metadata":{"name":"b"}})", "create", "pods", "a", "b"},
      {"POST", "/api/v1/namespaces/a/pods", "no JSON", "create", "pods", "a", ""},
      {"PATCH", "/apis/training.evenkeel.dev/v1alpha1/namespaces/a/trainingjobs/j/status", "{}", "patch",
       "trainingjobs/status", "a", "j"},
      {"PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/l", "{}", "update", "leases", "a", "l"},
      {"DELETE", "/api/v1/namespaces/a", "", "delete", "namespaces", "", "a"},
      {"GET", "/version", "", "list", "", "", ""},
  };
  for (const Row& row : rows) {
    const RequestFacts facts = facts_of(row.method, row.target, row.body);
    EXPECT_EQ(facts.verb, row.verb) << row.target;
    EXPECT_EQ(facts.kind, row.kind) << row.target;
    EXPECT_EQ(facts.name_space, row.name_space) << row.target;
    EXPECT_EQ(facts.name, row.name) << row.target;
    EXPECT_EQ(facts.path, row.target.substr(0, row.target.find('?')));
  }
}

FaultPlan plan_of(const std::string& text) {
  auto plan = parse_plan(*base::parse_json(text));
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  return plan.ok() ? *plan : FaultPlan{};
}

TEST(FaultPlan, the_first_rule_that_fits_decides_and_counts_say_which_requests) {
  const FaultPlan plan = plan_of(R"({"rules": [
    {"verb": "create", "kind": "pods", "first": 2, "last": 6, "every": 2, "action": "reset"},
    {"verb": "create", "kind": "pods", "per": "object", "last": 1, "when": "before", "action": "close"},
    {"kind": "leases", "action": "status", "status": 429, "retryAfterSeconds": 3}]})");
  const RequestFacts create = facts_of("POST", "/api/v1/namespaces/a/pods", "{}");
  const auto action = [&](std::uint64_t of_kind, std::uint64_t of_object) {
    return what_to_do(plan, create, {of_kind, of_object}).action;
  };
  EXPECT_EQ(action(1, 2), Action::kPass);
  EXPECT_EQ(action(2, 2), Action::kReset);
  EXPECT_EQ(action(3, 2), Action::kPass);
  EXPECT_EQ(action(3, 1), Action::kClose);
  EXPECT_EQ(action(6, 2), Action::kReset);
  EXPECT_EQ(action(8, 2), Action::kPass);
  const Fault lease = what_to_do(plan, facts_of("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/l", "{}"), {});
  EXPECT_EQ(lease.status, 429);
  EXPECT_EQ(lease.retry_after_seconds, 3);
  EXPECT_EQ(what_to_do(plan, facts_of("GET", "/api/v1/pods", ""), {}).action, Action::kPass);
}

TEST(FaultPlan, a_typing_mistake_is_an_error_that_names_it) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {R"({"rulse": []})", "rulse"},
      {R"({"rules": {}})", "rules"},
      {R"({"rules": [{"action": "rest"}]})", "rest"},
      {R"({"rules": [{"action": "reset", "verbs": "get"}]})", "verbs"},
      {R"({"rules": [{"action": "reset", "when": "later"}]})", "later"},
      {R"({"rules": [{"action": "reset", "per": "pod"}]})", "per"},
      {R"({"rules": [{"action": "reset", "first": -1}]})", "first"},
      {R"({"rules": [{"action": "reset", "verb": 5}]})", "verb"},
      {R"({"rules": [{"verb": "get"}]})", "action"},
      {R"({"rules": [{"action": "reset", "every": 0}]})", "every"},
      {R"({"rules": [{"action": "split", "bytes": 0}]})", "bytes"},
      {R"({"rules": [{"action": "status", "status": 42}]})", "42"},
  };
  for (const auto& [text, word] : rows) {
    const auto plan = parse_plan(*base::parse_json(text));
    ASSERT_FALSE(plan.ok()) << text;
    EXPECT_NE(plan.error().message.find(word), std::string::npos) << plan.error().message;
  }
}

TEST(FaultPlan, a_release_takes_away_what_holds_and_leaves_the_rest) {
  const FaultPlan rest = released(plan_of(R"({"rules": [{"verb": "get", "action": "freeze"},
    {"verb": "watch", "action": "withhold"}, {"verb": "create", "action": "reset"}]})"));
  ASSERT_EQ(rest.rules.size(), 1u);
  EXPECT_EQ(rest.rules[0].fault.action, Action::kReset);
}

}  // namespace
}  // namespace evenkeel::support
