#include "operator/reconcile/phase_policy.h"

#include <algorithm>

namespace evenkeel::oper {
namespace {

using contract::JobStage;

bool all_joined(const contract::JobReport& report) {
  const bool stepping = report.stage == JobStage::kRunning || report.stage == JobStage::kStopping ||
                        report.stage == JobStage::kCompleted || report.stage == JobStage::kStopped;
  return stepping && report.ranks > 0 && report.joined >= report.ranks;
}

bool has_started(const Pod& pod) {
  return pod.role == contract::Role::kWorker && !pod.deleting() && pod.phase != PodPhase::kPending;
}

}  // namespace

std::optional<contract::JobReport> report_of_attempt(const std::optional<contract::JobReport>& report,
                                                     const std::string& job_uid, std::int64_t attempt) {
  if (!report || report->job_uid != job_uid || report->attempt != attempt) return std::nullopt;
  return report;
}

Phase next_phase(Phase before, const std::vector<Pod>& pods,
                 const std::optional<contract::JobReport>& report) {
  if (before == Phase::kRunning || (report && all_joined(*report))) return Phase::kRunning;
  if (before == Phase::kRestarting) return Phase::kRestarting;
  return std::any_of(pods.begin(), pods.end(), has_started) ? Phase::kStarting : Phase::kPending;
}

}  // namespace evenkeel::oper
