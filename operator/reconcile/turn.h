// One run of reconcile: what came in, and the status, requests and reasons as they grow. Passed from step to
// step of the story in reconcile.cpp; lives for one call. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/reconcile/children.h"
#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/status.h"
#include "operator/reconcile/wake.h"

namespace evenkeel::oper {

struct Turn {
  Turn(const contract::TrainingJob& job_in, const Observed& observed_in, WallTimeValue now_in,
       const ReconcileOptions& options_in);

  const contract::TrainingJob& job;
  const Observed& observed;
  const WallTimeValue now;
  const ReconcileOptions& options;

  const JobStatus before;  // as stored
  JobStatus status;        // as it will be
  JobPlan plan;            // of status.attempt; empty before the first
  Children children;       // sorted by status.attempt
  // What the coordinator of status.attempt says, or said with its last breath.
  std::optional<contract::JobReport> report;
  Wake wake;
  Decision decision;

  // To be called whenever status.attempt has changed.
  void look_at_children();
  // From now on every pod that is there is an old one.
  void raise_attempt();
  // Scope Worker: a failed pod is replaced alone, and the size may change.
  bool replaces_workers() const;
  bool is_retry_due() const;

  void condition(const char* type, bool is_true, const std::string& reason, const std::string& message);
  void event(bool warning, const std::string& reason, const std::string& message);
  void tell_forced(const std::vector<std::string>& pods);
  void because(std::string reason) { decision.reasons.push_back(std::move(reason)); }
  void request(std::vector<Request> more);

  const Pod* coordinator() const;

 private:
  void look_at_attempt();
  void look_at_members();
};

// Counts, books time, compares with what is stored, and makes the decision.
Decision close(Turn& turn);

// A coordinator's termination message as a report, if it is one and belongs to the pod's attempt.
std::optional<contract::JobReport> last_words(const Pod& coordinator, const std::string& job_uid);

}  // namespace evenkeel::oper
