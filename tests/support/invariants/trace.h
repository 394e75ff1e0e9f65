// A recorded run of the operator: what the API server was asked (its audit log), what its objects became (watch
// events), what the operator said (logs, metrics), and what the test knows of it. Values; pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace evenkeel::invariants {

using base::Json;

// One finished request that wrote, or wanted to.
struct Call {
  int line = 0;  // in the audit log, from 1
  std::string audit_id;
  std::string verb;      // create update patch delete deletecollection
  std::string resource;  // "pods", "trainingjobs/status"
  std::string name_space;
  std::string name;
  std::string process;  // user agent and address: one for each process of the operator
  bool by_operator = false;
  int code = 0;
  double received = 0;  // seconds since 1970, by the API server's clock
  double answered = 0;
  Json body;  // null where the policy leaves it out
  bool done() const { return code >= 200 && code < 300; }
};

// One event of a watch.
struct Change {
  int line = 0;      // in the file of events, from 1
  std::string type;  // ADDED MODIFIED DELETED
  std::string kind;
  std::string name_space;
  std::string name;
  std::string uid;
  std::int64_t version = 0;  // one order for all kinds: etcd counts them together
  double seen = 0;           // when the recorder had it
  Json object;
};

struct Text {
  std::string name;
  std::string content;
};

struct ExpectedJob {
  std::string job;  // "namespace/name"
  std::string phase;
  int attempt = -1;  // -1: any
  int pods = -1;     // neither finished nor terminating; -1: any
};

// What no record tells. Times are seconds since 1970; 0: unknown, and what hangs on it is not judged.
struct Facts {
  std::vector<std::string> operator_agents;  // parts of user agents that are the operator's
  std::set<std::string> lost_nodes;
  std::vector<std::string> secrets;  // texts that may stand nowhere
  bool elects_leader = false;        // then a write without a Lease is one too late
  double renew_deadline_seconds = 10;
  double slack_seconds = 1;  // how far a view, or a request on its way, may lag
  double converged_at = 0;
  double rest_seconds = 60;
  double last_fault_at = 0;
  double recovery_seconds = 60;
  std::vector<ExpectedJob> expected;
  std::map<std::string, int> fault_free_counts;  // "create pods" -> 10; keys that are absent are not compared
  std::map<std::string, int> planned_extra;      // how many more a fault plan allows
};

struct Trace {
  std::vector<Call> calls;      // as the server finished them
  std::vector<Change> changes;  // by version
  std::vector<Text> texts;
  Facts facts;
};

struct Violation {
  std::string invariant;  // "I1"
  std::string what;
  std::string where;   // "audit line 12 (id)", "events line 3", "operator.log line 7"
  std::string object;  // "Pod ns/name"
};

base::Result<Facts> parse_facts(const Json& json);
// Lines that are no JSON are an error: a judge that skips what it can not read finds nothing. A last line without its
// end is one that was being written when the process was killed, and is left out.
base::Result<Trace> parse_trace(const std::string& audit, const std::string& events, std::vector<Text> texts,
                                Facts facts);

}  // namespace evenkeel::invariants
