// I7, I9 and I11: when the operator may write, and how often.
#include <cstdio>

#include "tests/support/invariants/judge.h"
#include "tests/support/invariants/view.h"

namespace evenkeel::invariants {
namespace {

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds);
  return text;
}

// One process's hold on the Lease. It counts from when the server received the renewal: the process counts from when
// it sent it, which is earlier, so what is late here is late there too.
struct Hold {
  double renewed_at = 0;
  bool released = false;
};

void on_lease(const Call& call, Hold& hold) {
  if (!call.done() || call.body.is_null()) return;
  const Json& spec = base::child(call.body, "spec");
  hold.released = base::string_at(spec, "holderIdentity").empty();
  hold.renewed_at = call.received;
}

std::string fault_of_write(const Call& call, const Hold* hold, const Facts& facts) {
  if (!hold) return facts.elects_leader ? call.process + " never held the Lease" : "";
  if (hold->released && call.received > hold->renewed_at + facts.slack_seconds)
    return call.process + " had given the Lease back";
  const double age = call.received - hold->renewed_at;
  if (age <= facts.renew_deadline_seconds + facts.slack_seconds) return "";
  return call.process + " renewed the Lease " + seconds_text(age) + " before";
}

}  // namespace

Violations no_write_without_the_lease(const Trace& trace) {
  Violations found;
  std::map<std::string, Hold> holds;
  for (const Call& call : trace.calls) {
    if (!call.by_operator) continue;
    if (call.resource == "leases") {
      on_lease(call, holds[call.process]);
      continue;
    }
    const auto hold = holds.find(call.process);
    const std::string fault = fault_of_write(call, hold == holds.end() ? nullptr : &hold->second, trace.facts);
    if (!fault.empty()) found.push_back({"I7", fault, where(call), object_of(call)});
  }
  return found;
}

Violations at_rest_nothing_is_written(const Trace& trace) {
  Violations found;
  const Facts& facts = trace.facts;
  if (facts.converged_at == 0) return found;
  for (const Call& call : trace.calls)
    if (call.by_operator && call.resource != "leases" && call.received > facts.converged_at + facts.rest_seconds)
      found.push_back({"I9", call.verb + ", " + seconds_text(call.received - facts.converged_at) + " after convergence",
                       where(call), object_of(call)});
  return found;
}

Violations counts_are_as_without_faults(const Trace& trace) {
  std::map<std::string, int> counts;
  for (const Call& call : trace.calls)
    if (call.by_operator && call.done()) ++counts[call.verb + " " + call.resource];
  Violations found;
  for (const auto& [what, expected] : trace.facts.fault_free_counts) {
    const auto extra = trace.facts.planned_extra.find(what);
    const int most = expected + (extra == trace.facts.planned_extra.end() ? 0 : extra->second);
    if (counts[what] < expected || counts[what] > most)
      found.push_back({"I11", std::to_string(counts[what]) + " times '" + what + "', without faults " +
                                  std::to_string(expected) + ", with this plan at most " + std::to_string(most),
                       "audit, all of it", what});
  }
  return found;
}

}  // namespace evenkeel::invariants
