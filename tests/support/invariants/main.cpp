// judge_trace AUDIT EVENTS [FACTS.json] [LOG...]: the verdict on a recorded run, one line for each violation.
// Exit: 0 none, 1 some, 2 the record can not be read.
#include <cstdio>

#include "base/files.h"
#include "tests/support/invariants/judge.h"

namespace evenkeel::invariants {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{4} << 30;

base::Result<Trace> read_trace(int count, char** paths) {
  base::Files& files = base::real_files();
  EVENKEEL_ASSIGN(const std::string audit, files.read(paths[0], kMaxBytes));
  EVENKEEL_ASSIGN(const std::string events, files.read(paths[1], kMaxBytes));
  Facts facts;
  if (count > 2) {
    EVENKEEL_ASSIGN(const std::string text, files.read(paths[2], kMaxBytes));
    EVENKEEL_ASSIGN(const Json json, base::parse_json(text));
    EVENKEEL_ASSIGN(facts, parse_facts(json));
  }
  std::vector<Text> texts;
  for (int i = 3; i < count; ++i) {
    EVENKEEL_ASSIGN(std::string text, files.read(paths[i], kMaxBytes));
    texts.push_back({paths[i], std::move(text)});
  }
  return parse_trace(audit, events, std::move(texts), std::move(facts));
}

int run(int count, char** paths) {
  const auto trace = read_trace(count, paths);
  if (!trace.ok()) {
    std::fprintf(stderr, "%s\n", trace.error().message.c_str());
    return 2;
  }
  const Violations found = judge(*trace);
  for (const Violation& violation : found) std::printf("%s\n", to_line(violation).c_str());
  return found.empty() ? 0 : 1;
}

}  // namespace
}  // namespace evenkeel::invariants

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: judge_trace AUDIT EVENTS [FACTS.json] [LOG...]\n");
    return 2;
  }
  return evenkeel::invariants::run(argc - 1, argv + 1);
}
