#include "tests/support/fault_proxy/plan.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/json_reader.h"

namespace evenkeel::support {
namespace {

using base::Json;
using base::JsonReader;

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

// The names of a table's entries, in its order.
template <class Table>
std::vector<std::string_view> names_of(const Table& table) {
  std::vector<std::string_view> names;
  for (const auto& [value, name] : table) names.push_back(name);
  return names;
}

std::uint64_t count_from(JsonReader& json, std::string_view key, std::uint64_t fallback, std::int64_t least) {
  return json.has(key) ? static_cast<std::uint64_t>(json.integer(key, least, least, JsonReader::kMostExact)) : fallback;
}

Fault read_fault(JsonReader& json) {
  Fault fault;
  fault.action = kActions[static_cast<std::size_t>(json.require("action").one_of("action", names_of(kActions), 0))].first;
  fault.when = json.one_of("when", {"before", "after"}, 1) == 0 ? When::kBefore : When::kAfter;
  fault.status = static_cast<int>(json.integer("status", 503, 200, 599));
  if (json.has("retryAfterSeconds"))
    fault.retry_after_seconds = static_cast<int>(json.integer("retryAfterSeconds", 0, 0, 86400));
  fault.body = json.string("body");
  fault.content_type = json.string("contentType", fault.content_type);
  fault.ms = json.count("ms");
  fault.bytes = count_from(json, "bytes", fault.bytes, 1);
  fault.after_bytes = count_from(json, "afterBytes", 0, 0);
  return fault;
}

FaultRule read_rule(JsonReader& json) {
  FaultRule rule;
  rule.verb = json.string("verb");
  rule.kind = json.string("kind");
  rule.name_space = json.string("namespace");
  rule.name = json.string("name");
  rule.per_object = json.one_of("per", {"kind", "object"}, 0) == 1;
  rule.first = count_from(json, "first", rule.first, 0);
  rule.last = count_from(json, "last", rule.last, 0);
  rule.every = count_from(json, "every", rule.every, 1);
  rule.fault = read_fault(json);
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
  JsonReader root(json, "plan");
  FaultPlan plan;
  for (JsonReader& rule : root.array("rules")) plan.rules.push_back(read_rule(rule));
  EVENKEEL_TRY(root.finish());
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
