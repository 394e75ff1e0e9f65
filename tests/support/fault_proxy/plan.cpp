#include "tests/support/fault_proxy/plan.h"

#include <algorithm>
#include <array>
#include <utility>

namespace evenkeel::support {
namespace {

using base::Json;

constexpr std::array<std::pair<Action, const char*>, 10> kActions{{{Action::kPass, "pass"},
                                                                   {Action::kStatus, "status"},
                                                                   {Action::kReset, "reset"},
                                                                   {Action::kClose, "close"},
                                                                   {Action::kSilence, "silence"},
                                                                   {Action::kDrip, "drip"},
                                                                   {Action::kSplit, "split"},
                                                                   {Action::kFreeze, "freeze"},
                                                                   {Action::kLag, "lag"},
                                                                   {Action::kWithhold, "withhold"}}};

std::vector<std::string> segments_of(std::string_view path) {
  std::vector<std::string> segments;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view one = path.substr(0, slash);
    if (!one.empty()) segments.emplace_back(one);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
  return segments;
}

bool asks_to_watch(std::string_view query) {
  for (const std::string_view yes : {"watch=true", "watch=1"}) {
    const std::size_t at = query.find(yes);
    if (at != std::string_view::npos && (at == 0 || query[at - 1] == '&')) return true;
  }
  return false;
}

std::string verb_of(std::string_view method, bool named, bool watch) {
  if (method == "GET") return watch ? "watch" : named ? "get" : "list";
  if (method == "POST") return "create";
  if (method == "PUT") return "update";
  if (method == "PATCH") return "patch";
  if (method == "DELETE") return "delete";
  return std::string(method);
}

// The namespace, kind and name behind "/api/v1" or "/apis/<group>/<version>".
void read_object_path(const std::vector<std::string>& segments, RequestFacts& facts) {
  std::size_t at = 0;
  if (!segments.empty() && segments[0] == "api") at = 2;
  if (!segments.empty() && segments[0] == "apis") at = 3;
  if (at == 0 || segments.size() <= at) return;
  // "namespaces/x" alone is the object x; with more behind it, where an object lies.
  if (segments[at] == "namespaces" && segments.size() > at + 2) {
    facts.name_space = segments[at + 1];
    at += 2;
  }
  facts.kind = segments[at];
  if (segments.size() > at + 1) facts.name = segments[at + 1];
  if (segments.size() > at + 2) facts.kind += "/" + segments[at + 2];
}

base::Error invalid(std::string message) {
  return {base::ErrorCode::kInvalidInput, std::move(message)};
}

base::Status check_members(const Json& object, std::initializer_list<std::string_view> known) {
  if (!object.is_object()) return invalid("a plan and its rules are objects");
  for (const auto& [key, value] : object.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      return invalid("unknown member '" + key + "' in a plan of faults");
  return {};
}

base::Result<std::uint64_t> count_at(const Json& object, const char* key, std::uint64_t fallback) {
  if (!object.contains(key)) return fallback;
  if (!object[key].is_number_unsigned())
    return invalid(std::string(key) + " must be a whole number from 0 on, not " + object[key].dump());
  return object[key].get<std::uint64_t>();
}

base::Result<Fault> parse_fault(const Json& json) {
  Fault fault;
  const std::string action = base::string_at(json, "action");
  const auto* known = std::find_if(kActions.begin(), kActions.end(), [&](const auto& one) { return action == one.second; });
  if (known == kActions.end()) return invalid("unknown action '" + action + "' in a plan of faults");
  fault.action = known->first;
  const std::string when = base::string_at(json, "when", "after");
  if (when != "before" && when != "after") return invalid("when is 'before' or 'after', not '" + when + "'");
  fault.when = when == "before" ? When::kBefore : When::kAfter;
  EVENKEEL_ASSIGN(const std::uint64_t status, count_at(json, "status", 503));
  if (status < 200 || status > 599) return invalid("status " + std::to_string(status) + " is not from 200 to 599");
  fault.status = static_cast<int>(status);
  if (json.contains("retryAfterSeconds")) {
    EVENKEEL_ASSIGN(const std::uint64_t seconds, count_at(json, "retryAfterSeconds", 0));
    fault.retry_after_seconds = static_cast<int>(seconds);
  }
  fault.body = base::string_at(json, "body");
  fault.content_type = base::string_at(json, "contentType", fault.content_type);
  EVENKEEL_ASSIGN(const std::uint64_t ms, count_at(json, "ms", 0));
  fault.ms = static_cast<std::int64_t>(ms);
  EVENKEEL_ASSIGN(fault.bytes, count_at(json, "bytes", 1));
  if (fault.bytes == 0) return invalid("bytes must be at least 1");
  EVENKEEL_ASSIGN(fault.after_bytes, count_at(json, "afterBytes", 0));
  return fault;
}

base::Result<FaultRule> parse_rule(const Json& json) {
  EVENKEEL_TRY(check_members(json, {"verb", "kind", "namespace", "name", "per", "first", "last", "every", "action", "when",
                                    "status", "retryAfterSeconds", "body", "contentType", "ms", "bytes", "afterBytes"}));
  FaultRule rule;
  rule.verb = base::string_at(json, "verb");
  rule.kind = base::string_at(json, "kind");
  rule.name_space = base::string_at(json, "namespace");
  rule.name = base::string_at(json, "name");
  const std::string per = base::string_at(json, "per", "kind");
  if (per != "kind" && per != "object") return invalid("per is 'kind' or 'object', not '" + per + "'");
  rule.per_object = per == "object";
  EVENKEEL_ASSIGN(rule.first, count_at(json, "first", rule.first));
  EVENKEEL_ASSIGN(rule.last, count_at(json, "last", rule.last));
  EVENKEEL_ASSIGN(rule.every, count_at(json, "every", rule.every));
  if (rule.every == 0) return invalid("every must be at least 1");
  EVENKEEL_ASSIGN(rule.fault, parse_fault(json));
  return rule;
}

bool fits(const std::string& wanted, const std::string& is) {
  return wanted.empty() || wanted == is;
}

}  // namespace

const char* action_name(Action action) {
  for (const auto& [one, name] : kActions)
    if (one == action) return name;
  return "?";
}

RequestFacts facts_of(std::string_view method, std::string_view target, std::string_view body) {
  RequestFacts facts;
  const std::size_t question = target.find('?');
  facts.method = method;
  facts.path = target.substr(0, question);
  read_object_path(segments_of(facts.path), facts);
  const std::string_view query = question == std::string_view::npos ? "" : target.substr(question + 1);
  facts.verb = verb_of(method, !facts.name.empty(), asks_to_watch(query));
  if (facts.verb == "create" && facts.name.empty()) {
    const auto object = base::parse_json(body);
    if (object.ok()) facts.name = base::string_at(base::child(*object, "metadata"), "name");
  }
  return facts;
}

base::Result<FaultPlan> parse_plan(const Json& json) {
  EVENKEEL_TRY(check_members(json, {"rules"}));
  FaultPlan plan;
  if (!json.contains("rules")) return plan;
  if (!json["rules"].is_array()) return invalid("rules must be a list");
  for (const Json& one : json["rules"]) {
    EVENKEEL_ASSIGN(FaultRule rule, parse_rule(one));
    plan.rules.push_back(std::move(rule));
  }
  return plan;
}

Fault what_to_do(const FaultPlan& plan, const RequestFacts& request, RequestCount count) {
  for (const FaultRule& rule : plan.rules) {
    const std::uint64_t number = rule.per_object ? count.of_object : count.of_kind;
    if (!fits(rule.verb, request.verb) || !fits(rule.kind, request.kind) || !fits(rule.name, request.name) ||
        !fits(rule.name_space, request.name_space))
      continue;
    if (number < rule.first || number > rule.last || (number - rule.first) % rule.every != 0) continue;
    return rule.fault;
  }
  return {};
}

FaultPlan released(const FaultPlan& plan) {
  FaultPlan rest = plan;
  std::erase_if(rest.rules, [](const FaultRule& rule) {
    return rule.fault.action == Action::kFreeze || rule.fault.action == Action::kWithhold;
  });
  return rest;
}

}  // namespace evenkeel::support
