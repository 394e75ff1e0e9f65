#include "tests/operator/judged_run.h"

#include <fstream>
#include <sstream>

#include "tests/support/invariants/judge.h"

namespace evenkeel::oper {
namespace {

std::string content(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<invariants::Text> logs_in(const std::filesystem::path& folder) {
  std::vector<invariants::Text> logs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("operator-")) logs.push_back({name, content(entry.path())});
  }
  return logs;
}

}  // namespace

JudgedRun::JudgedRun(ApiClient& client, std::filesystem::path folder)
    : folder_(std::move(folder)), recorder_(std::make_unique<EventRecorder>(client, folder_ / "events.jsonl")) {}

void JudgedRun::add_operator(int pid) {
  agents_.push_back("(pid " + std::to_string(pid) + ")");
}

std::string JudgedRun::new_violations(const std::string& metrics) {
  if (!recorder_->drain(std::chrono::seconds(20))) return "the recorder does not see what the API server holds\n";
  invariants::Facts facts;
  facts.operator_agents = agents_;
  facts.secrets = {content(folder_ / "token")};
  std::vector<invariants::Text> texts = logs_in(folder_);
  texts.push_back({"metrics", metrics});
  const auto trace = invariants::parse_trace(content(folder_ / "audit.log"), content(folder_ / "events.jsonl"),
                                             std::move(texts), std::move(facts));
  if (!trace.ok()) return trace.error().message + "\n";
  std::string fresh;
  for (const invariants::Violation& violation : invariants::judge(*trace)) {
    const std::string line = invariants::to_line(violation);
    if (told_.insert(line).second) fresh += line + "\n";
  }
  return fresh;
}

}  // namespace evenkeel::oper
