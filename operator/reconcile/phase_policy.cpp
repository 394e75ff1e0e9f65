#include "operator/reconcile/phase_policy.h"

#include <algorithm>
#include <map>

namespace evenkeel::oper {
namespace {

using contract::JobStage;

bool is_stepping(const contract::JobReport& report) {
  return report.stage == JobStage::kRunning || report.stage == JobStage::kStopping ||
         report.stage == JobStage::kCompleted || report.stage == JobStage::kStopped;
}

bool all_joined(const contract::JobReport& report) {
  return is_stepping(report) && report.ranks > 0 && report.joined >= report.ranks;
}

int without_node(const std::vector<Pod>& pods) {
  return static_cast<int>(std::ranges::count_if(pods, [](const Pod& pod) {
    return pod.role == contract::Role::kWorker && pod.phase == PodPhase::kPending &&
           base::string_at(pod.scheduled, "status") == "False";
  }));
}

bool enough_joined(Phase before, const std::vector<Pod>& pods, const contract::JobReport& report,
                   const JobSize& size) {
  if (!is_stepping(report)) return false;
  const int needed =
      before == Phase::kRestarting ? std::max(size.least, size.workers - without_node(pods)) : size.least;
  return joined_workers(pods, report, size.ranks_per_pod) >=
         (size.least < size.workers ? needed : size.workers);
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

namespace {
Phase phase_of(Phase before, const std::vector<Pod>& pods, bool joined) {
  if (before == Phase::kRunning || joined) return Phase::kRunning;
  if (before == Phase::kRestarting) return Phase::kRestarting;
  return std::any_of(pods.begin(), pods.end(), has_started) ? Phase::kStarting : Phase::kPending;
}
}  // namespace

Phase next_phase(Phase before, const std::vector<Pod>& pods,
                 const std::optional<contract::JobReport>& report) {
  return phase_of(before, pods, report && all_joined(*report));
}

bool takes_part(const contract::ReplicaReport& replica) {
  return replica.state != "lost" && replica.state != "left" && replica.state != "done";
}

int joined_workers(const std::vector<Pod>& pods, const contract::JobReport& report, int ranks_per_pod) {
  std::map<std::string, int> ranks;
  for (const contract::ReplicaReport& replica : report.replicas) {
    if (takes_part(replica) || replica.state == "done") ++ranks[replica.pod];
  }
  return static_cast<int>(std::ranges::count_if(pods, [&](const Pod& pod) {
    const auto own = ranks.find(pod.name);
    return pod.role == contract::Role::kWorker && own != ranks.end() && own->second >= ranks_per_pod;
  }));
}

Phase next_phase(Phase before, const std::vector<Pod>& pods, const std::optional<contract::JobReport>& report,
                 const JobSize& size) {
  return phase_of(before, pods, report && enough_joined(before, pods, *report, size));
}

}  // namespace evenkeel::oper
