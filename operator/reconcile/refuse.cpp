// The other decision: an object that does not decode hurts itself only.
#include <algorithm>

#include "contract/labels.h"
#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/status.h"
#include "operator/reconcile/text.h"

namespace evenkeel::oper {
namespace {

bool is_ours(const Json& object) {
  const std::string manager =
      base::string_at(base::child(object, "spec"), "managedBy", contract::kDefaultManagedBy);
  const bool deleting = !base::string_at(base::child(object, "metadata"), "deletionTimestamp").empty();
  return !deleting && (manager.empty() || manager == contract::kDefaultManagedBy);
}

}  // namespace

Decision refuse(const Json& object, const std::string& errors, WallTimeValue now) {
  Decision decision;
  decision.reasons.push_back("invalid: " + errors);
  JobStatus status = decode_status(base::child(object, "status"));
  // Terminal is sticky, and this refusal itself is terminal: it is written once.
  if (!is_ours(object) || is_terminal(status.phase)) return decision;
  const std::int64_t generation = base::int_at(base::child(object, "metadata"), "generation");
  status.phase = Phase::kFailed;
  status.observed_generation = std::max(status.observed_generation, generation);
  if (!status.start_time) status.start_time = now;
  status.completion_time = now;
  set_condition(status.conditions, kConditionAccepted, {false, "InvalidSpec", errors}, generation, now);
  set_condition(status.conditions, kConditionFailed, {true, "InvalidSpec", errors}, generation, now);
  set_condition(status.conditions, kConditionRunning, {false, "InvalidSpec", "the spec is not valid"},
                generation, now);
  decision.status = to_json(status);
  decision.events.push_back({true, "InvalidSpec", fit_text(errors)});
  return decision;
}

}  // namespace evenkeel::oper
