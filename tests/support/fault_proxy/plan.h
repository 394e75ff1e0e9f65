// What goes wrong with which request: a plan is a list of rules, and a pure function decides. Values only; made from
// JSON by tests and by the program, read by connection.cpp.
//
//   {"rules": [{"verb": "create", "kind": "pods", "first": 1, "last": 3, "when": "after", "action": "reset"}]}
//
// The first rule that fits a request counts. Without any the request passes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace evenkeel::support {

// What a request is, read from its method, its target and, for a create, the name in its body.
struct RequestFacts {
  std::string method;
  std::string path;  // without the query
  std::string verb;  // get list watch create update patch delete
  std::string kind;  // "pods", "pods/status", "trainingjobs/scale", "" outside of the API
  std::string name_space;
  std::string name;
  bool operator==(const RequestFacts&) const = default;
};
RequestFacts facts_of(std::string_view method, std::string_view target, std::string_view body);

// From 1: of this verb and kind, and among these of this very object.
struct RequestCount {
  std::uint64_t of_kind = 1;
  std::uint64_t of_object = 1;
};

enum class Action {
  kPass,
  kStatus,    // an answer of the proxy's own: status, Retry-After, body
  kReset,     // RST
  kClose,     // FIN, in the middle of the answer with after_bytes
  kSilence,   // nothing, until the client gives up
  kDrip,      // the answer byte by byte, one each `ms`
  kSplit,     // the answer in chunks of `bytes` bytes, wherever characters end
  kFreeze,    // held for as long as the plan says so
  kLag,       // each event of a watch late by `ms`, in order
  kWithhold,  // events of a watch are kept back for as long as the plan says so
};
const char* action_name(Action action);

// kBefore: the server never sees the request. kAfter: it has answered, so a write is committed.
enum class When { kBefore, kAfter };

struct Fault {
  Action action = Action::kPass;
  When when = When::kAfter;
  int status = 503;
  std::optional<int> retry_after_seconds;
  std::string body;  // of kStatus; empty: a Status object of Kubernetes
  std::string content_type = "application/json";
  std::int64_t ms = 0;
  std::uint64_t bytes = 1;
  std::uint64_t after_bytes = 0;  // of the answer's body that still come, for kReset, kClose and kSilence
  bool operator==(const Fault&) const = default;
};

struct FaultRule {
  std::string verb;  // empty: any; the same for all names
  std::string kind;
  std::string name_space;
  std::string name;
  bool per_object = false;  // first, last and every count the requests for one object, not for the kind
  std::uint64_t first = 1;
  std::uint64_t last = UINT64_MAX;
  std::uint64_t every = 1;
  Fault fault;
};

struct FaultPlan {
  std::vector<FaultRule> rules;
};

// Unknown members and values are errors that name them: a plan with a typing mistake would test nothing.
base::Result<FaultPlan> parse_plan(const base::Json& json);

Fault what_to_do(const FaultPlan& plan, const RequestFacts& request, RequestCount count);

// The same plan without what holds requests or events back: they go on.
FaultPlan released(const FaultPlan& plan);

}  // namespace evenkeel::support
