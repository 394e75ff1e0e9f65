// I10 and I12: how it ended, and what was said on the way.
#include <array>
#include <sstream>
#include <string_view>

#include "tests/support/invariants/judge.h"
#include "tests/support/invariants/view.h"

namespace evenkeel::invariants {
namespace {

// What a program says when it dies of itself, or a sanitizer of it. Looked for in lines that are no JSON: a log line
// may quote a user's program.
constexpr std::array<std::string_view, 9> kPanics{
    "terminate called",  "AddressSanitizer",   "LeakSanitizer", "ThreadSanitizer", "UndefinedBehaviorSanitizer",
    ": runtime error: ", "Assertion `",        "panic: ",       "Segmentation fault"};
// A credential shows by its form, whoever's it is.
constexpr std::array<std::string_view, 3> kCredentials{"PRIVATE KEY-----", "Bearer ey", "client-key-data"};

// The state at a moment: the last change of each object until then.
std::map<std::string, const Change*> state_until(const Trace& trace, double moment) {
  std::map<std::string, const Change*> state;
  for (const Change& change : trace.changes)
    if (change.seen <= moment) state[change.uid] = &change;
  return state;
}

int standing_pods(const std::map<std::string, const Change*>& state, const std::string& job, const Facts& facts) {
  int count = 0;
  for (const auto& [uid, change] : state)
    count += change->kind == "Pod" && job_uid(change->object) == job && holds_its_place(*change, facts) &&
             !terminating(change->object);
  return count;
}

std::string fault_of_job(const ExpectedJob& expected, const Change& job, int pods) {
  const std::string now = job.type == "DELETED" ? "" : phase(job.object);
  if (now != expected.phase) return "the phase is '" + now + "', not '" + expected.phase + "'";
  const auto attempt = base::int_at(base::child(job.object, "status"), "attempt");
  if (expected.attempt >= 0 && attempt != expected.attempt)
    return "the attempt is " + std::to_string(attempt) + ", not " + std::to_string(expected.attempt);
  if (expected.pods < 0 || expected.pods == pods) return "";
  return std::to_string(pods) + " pods stand, not " + std::to_string(expected.pods);
}

// The newest object of that name: a namesake that was deleted before says nothing about the end.
const Change* newest_job(const std::map<std::string, const Change*>& state, const std::string& name) {
  const Change* newest = nullptr;
  for (const auto& [uid, change] : state)
    if (is_job(*change) && change->name_space + "/" + change->name == name &&
        (!newest || newest->version < change->version))
      newest = change;
  return newest;
}

// Why a text is wrong; never the secret itself.
std::string fault_of_text(const std::string& text, const Facts& facts) {
  for (std::size_t i = 0; i < facts.secrets.size(); ++i)
    if (!facts.secrets[i].empty() && text.find(facts.secrets[i]) != std::string::npos)
      return "it contains secret " + std::to_string(i + 1) + " of those that are known";
  for (const std::string_view form : kCredentials)
    if (text.find(form) != std::string::npos) return "it contains a credential ('" + std::string(form) + "')";
  return "";
}

std::string fault_of_line(const std::string& line, const Facts& facts) {
  if (!line.starts_with('{'))
    for (const std::string_view panic : kPanics)
      if (line.find(panic) != std::string::npos) return "'" + std::string(panic) + "'";
  return fault_of_text(line, facts);
}

void judge_text(const Text& text, const Facts& facts, Violations& found) {
  std::istringstream lines(text.content);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string fault = fault_of_line(line, facts);
    ++number;
    if (!fault.empty()) found.push_back({"I12", fault, text.name + " line " + std::to_string(number), text.name});
  }
}

}  // namespace

Violations the_end_is_the_fault_free_one(const Trace& trace) {
  Violations found;
  const Facts& facts = trace.facts;
  if (facts.last_fault_at == 0) return found;
  const double limit = facts.last_fault_at + facts.recovery_seconds;
  const auto state = state_until(trace, limit);
  for (const ExpectedJob& expected : facts.expected) {
    const Change* job = newest_job(state, expected.job);
    const std::string fault =
        job ? fault_of_job(expected, *job, standing_pods(state, job->uid, facts)) : "the job is not there";
    if (!fault.empty())
      found.push_back({"I10", fault + " at the end of the time for recovery",
                       job ? where(*job) : "events, all of them", "TrainingJob " + expected.job});
  }
  return found;
}

Violations nothing_secret_and_no_panic(const Trace& trace) {
  Violations found;
  for (const Text& text : trace.texts) judge_text(text, trace.facts, found);
  for (const Call& call : trace.calls) {
    if (!call.by_operator || (call.resource != "events" && call.resource != "trainingjobs/status")) continue;
    const std::string fault = fault_of_text(base::dump_json(call.body), trace.facts);
    if (!fault.empty()) found.push_back({"I12", fault, where(call), object_of(call)});
  }
  return found;
}

}  // namespace evenkeel::invariants
