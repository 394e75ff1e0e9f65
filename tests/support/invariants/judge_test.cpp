// The good trace is silent, and each bad one is flagged by its own judge alone. A bad trace is the good one with one
// fault: traces/I*.json says what went wrong and which lines show it.
#include "tests/support/invariants/judge.h"

#include <gtest/gtest.h>

#include "base/files.h"

namespace evenkeel::invariants {
namespace {

using Lines = std::vector<Json>;

std::string text_of(const std::string& name) {
  const auto text = base::real_files().read(EVENKEEL_SOURCE_DIR "/tests/support/invariants/traces/" + name, 64u << 20);
  EXPECT_TRUE(text.ok()) << text.error().message;
  return text.ok() ? *text : "";
}

Lines lines_of(const std::string& text) {
  Lines lines;
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(*base::parse_json(text.substr(begin, end - begin)));
  return lines;
}

std::string joined(const Lines& lines) {
  std::string text;
  for (const Json& line : lines)
    if (!line.is_null()) text += base::dump_json(line) + "\n";
  return text;
}

// {"line": 3, "merge": {...}}: that line with a merge patch; {"copy": 3, "merge": {...}}: a changed copy at the end;
// {"remove": 3}.
void apply(const Json& edit, Lines& lines) {
  const auto line = [&](const char* key) -> Json& {
    return lines.at(static_cast<std::size_t>(base::int_at(edit, key) - 1));
  };
  if (edit.contains("remove")) {
    line("remove") = Json();
  } else if (edit.contains("copy")) {
    Json copy = line("copy");
    copy.merge_patch(edit.at("merge"));
    lines.push_back(copy);
  } else {
    line("line").merge_patch(edit.at("merge"));
  }
}

std::string edited(const std::string& text, const Json& edits) {
  Lines lines = lines_of(text);
  if (edits.is_array())
    for (const Json& edit : edits) apply(edit, lines);
  return joined(lines);
}

Trace trace_with(const Json& fault) {
  Json facts = *base::parse_json(text_of("good.facts.json"));
  facts.merge_patch(base::child(fault, "facts"));
  auto parsed = parse_facts(facts);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  std::vector<Text> texts{{"operator.log", text_of("good.operator.log") + base::string_at(fault, "log")},
                          {"metrics", text_of("good.metrics.txt")}};
  auto trace = parse_trace(edited(text_of("good.audit.jsonl"), base::child(fault, "audit")),
                           edited(text_of("good.events.jsonl"), base::child(fault, "events")), std::move(texts), *parsed);
  EXPECT_TRUE(trace.ok()) << trace.error().message;
  return trace.ok() ? *trace : Trace();
}

std::string told(const Violations& all) {
  std::string text;
  for (const Violation& one : all) text += to_line(one) + "\n";
  return text;
}

TEST(Judge, is_silent_on_the_good_trace_which_has_what_each_judge_looks_at) {
  const Trace trace = trace_with(Json::object());
  EXPECT_TRUE(judge(trace).empty()) << told(judge(trace));
  std::map<std::string, int> calls;
  for (const Call& call : trace.calls)
    if (call.by_operator) ++calls[call.verb + " " + call.resource];
  for (const char* needed : {"create pods", "delete pods", "patch trainingjobs/status", "update leases"})
    EXPECT_GT(calls[needed], 0) << needed;
  EXPECT_GT(trace.facts.converged_at, 0);
  EXPECT_GT(trace.facts.last_fault_at, 0);
  EXPECT_FALSE(trace.facts.expected.empty());
  EXPECT_FALSE(trace.facts.fault_free_counts.empty());
}

class BadTrace : public ::testing::TestWithParam<int> {};

TEST_P(BadTrace, is_flagged_by_its_own_judge_alone) {
  const std::string invariant = "I" + std::to_string(GetParam());
  const auto faults = base::parse_json(text_of(invariant + ".json"));
  ASSERT_TRUE(faults.ok()) << faults.error().message;
  ASSERT_TRUE(faults->is_array() && !faults->empty());
  for (const Json& fault : *faults) {
    const Violations found = judge(trace_with(fault));
    EXPECT_FALSE(found.empty()) << "not seen: " << base::string_at(fault, "fault");
    for (const Violation& violation : found)
      EXPECT_EQ(violation.invariant, invariant) << base::string_at(fault, "fault") << ": " << to_line(violation);
  }
}

INSTANTIATE_TEST_SUITE_P(invariants, BadTrace, ::testing::Range(1, 13),
                         [](const auto& test) { return "I" + std::to_string(test.param); });

TEST(Judge, says_so_when_a_record_can_not_be_read) {
  EXPECT_FALSE(parse_trace("{\"verb\":\n", "", {}, {}).ok());
  EXPECT_FALSE(parse_trace("", "{\"type\":\"ADDED\",\"object\":{}}\n", {}, {}).ok());
  EXPECT_FALSE(parse_facts(*base::parse_json("{\"conwerged\": 3}")).ok());
  EXPECT_TRUE(parse_trace("{\"verb\":", "", {}, {}).ok()) << "cut off by a kill";
}

}  // namespace
}  // namespace evenkeel::invariants
