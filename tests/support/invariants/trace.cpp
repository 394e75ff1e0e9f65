#include "tests/support/invariants/trace.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <sstream>

#include "base/time_text.h"

namespace evenkeel::invariants {
namespace {

using Row = std::function<base::Status(int line, const Json& json)>;

base::Status each_line(const std::string& text, const std::string& file, const Row& row) {
  std::size_t begin = 0;
  for (int line = 1;; ++line) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) return {};
    const auto json = base::parse_json(std::string_view(text).substr(begin, end - begin), {.max_bytes = 64u << 20});
    begin = end + 1;
    if (!json.ok()) return base::with_context(file + " line " + std::to_string(line), json.error());
    EVENKEEL_TRY(row(line, *json));
  }
}

double seconds_of(const Json& json, std::string_view key) {
  const auto time = base::parse_rfc3339(base::string_at(json, key));
  return time.ok() ? std::chrono::duration<double>(time->time_since_epoch()).count() : 0;
}

bool writes(const std::string& verb) {
  return verb == "create" || verb == "update" || verb == "patch" || verb == "delete" || verb == "deletecollection";
}

std::string first_address(const Json& entry) {
  const Json& all = base::child(entry, "sourceIPs");
  return all.is_array() && !all.empty() && all[0].is_string() ? all[0].get<std::string>() : "";
}

Call to_call(int line, const Json& entry, const Facts& facts) {
  const Json& target = base::child(entry, "objectRef");
  const std::string part = base::string_at(target, "subresource");
  Call call;
  call.line = line;
  call.audit_id = base::string_at(entry, "auditID");
  call.verb = base::string_at(entry, "verb");
  call.resource = base::string_at(target, "resource") + (part.empty() ? "" : "/" + part);
  call.name_space = base::string_at(target, "namespace");
  call.name = base::string_at(target, "name");
  const std::string agent = base::string_at(entry, "userAgent");
  call.process = agent + " at " + first_address(entry);
  call.by_operator = std::ranges::any_of(
      facts.operator_agents, [&](const std::string& one) { return agent.find(one) != std::string::npos; });
  call.code = static_cast<int>(base::int_at(base::child(entry, "responseStatus"), "code"));
  call.received = seconds_of(entry, "requestReceivedTimestamp");
  call.answered = seconds_of(entry, "stageTimestamp");
  call.body = entry.value("requestObject", Json());
  return call;
}

Change to_change(int line, const Json& event) {
  Change change;
  change.object = base::child(event, "object");
  const Json& meta = base::child(change.object, "metadata");
  const std::string version = base::string_at(meta, "resourceVersion");
  change.line = line;
  change.type = base::string_at(event, "type");
  change.kind = base::string_at(change.object, "kind");
  change.name_space = base::string_at(meta, "namespace");
  change.name = base::string_at(meta, "name");
  change.uid = base::string_at(meta, "uid");
  std::from_chars(version.data(), version.data() + version.size(), change.version);
  change.seen = base::double_at(event, "seen");
  return change;
}

std::vector<std::string> strings_at(const Json& json, std::string_view key) {
  std::vector<std::string> all;
  const Json& list = base::child(json, key);
  if (list.is_array())
    for (const Json& item : list)
      if (item.is_string()) all.push_back(item.get<std::string>());
  return all;
}

std::map<std::string, int> numbers_at(const Json& json, std::string_view key) {
  std::map<std::string, int> all;
  for (const auto& [name, value] : base::child(json, key).items())
    if (value.is_number_integer()) all[name] = value.get<int>();
  return all;
}

std::vector<ExpectedJob> expected_at(const Json& json) {
  std::vector<ExpectedJob> all;
  const Json& list = base::child(json, "expected");
  if (!list.is_array()) return all;
  for (const Json& item : list)
    all.push_back({base::string_at(item, "job"), base::string_at(item, "phase"),
                   static_cast<int>(base::int_at(item, "attempt", -1)),
                   static_cast<int>(base::int_at(item, "pods", -1))});
  return all;
}

const std::set<std::string> kFacts{"operatorAgents",       "lostNodes",     "secrets",      "electsLeader",
                                   "renewDeadlineSeconds", "slackSeconds",  "convergedAt",  "restSeconds",
                                   "lastFaultAt",          "recoverySeconds", "expected",   "faultFreeCounts",
                                   "plannedExtra"};

}  // namespace

base::Result<Facts> parse_facts(const Json& json) {
  for (const auto& [key, value] : json.items())
    if (!kFacts.contains(key))
      return base::Error{base::ErrorCode::kInvalidInput, "unknown fact '" + key + "'; see trace.h"};
  Facts facts;
  facts.operator_agents = strings_at(json, "operatorAgents");
  for (std::string& node : strings_at(json, "lostNodes")) facts.lost_nodes.insert(std::move(node));
  facts.secrets = strings_at(json, "secrets");
  facts.elects_leader = base::bool_at(json, "electsLeader");
  facts.renew_deadline_seconds = base::double_at(json, "renewDeadlineSeconds", facts.renew_deadline_seconds);
  facts.slack_seconds = base::double_at(json, "slackSeconds", facts.slack_seconds);
  facts.converged_at = base::double_at(json, "convergedAt");
  facts.rest_seconds = base::double_at(json, "restSeconds", facts.rest_seconds);
  facts.last_fault_at = base::double_at(json, "lastFaultAt");
  facts.recovery_seconds = base::double_at(json, "recoverySeconds", facts.recovery_seconds);
  facts.expected = expected_at(json);
  facts.fault_free_counts = numbers_at(json, "faultFreeCounts");
  facts.planned_extra = numbers_at(json, "plannedExtra");
  return facts;
}

base::Result<Trace> parse_trace(const std::string& audit, const std::string& events, std::vector<Text> texts,
                                Facts facts) {
  Trace trace;
  trace.texts = std::move(texts);
  trace.facts = std::move(facts);
  EVENKEEL_TRY(each_line(audit, "audit", [&](int line, const Json& entry) -> base::Status {
    if (writes(base::string_at(entry, "verb")) && base::string_at(entry, "stage") == "ResponseComplete")
      trace.calls.push_back(to_call(line, entry, trace.facts));
    return {};
  }));
  EVENKEEL_TRY(each_line(events, "events", [&](int line, const Json& event) -> base::Status {
    trace.changes.push_back(to_change(line, event));
    if (trace.changes.back().version > 0 && !trace.changes.back().uid.empty()) return {};
    return base::Error{base::ErrorCode::kInvalidInput,
                       "events line " + std::to_string(line) + ": no object with a version and a UID"};
  }));
  std::ranges::stable_sort(trace.changes, {}, &Change::version);
  return trace;
}

}  // namespace evenkeel::invariants
