// The condition PodsReady: whether all pods of the attempt run, and if not, the one sentence that says why,
// in the words of the scheduler, the kubelet or the API server. Its reason is also what time_accounting.h
// books waiting under. Called by reconcile. Pure.
#pragma once

#include <string>
#include <vector>

#include "operator/reconcile/children.h"
#include "operator/reconcile/conditions.h"
#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/wake.h"

namespace evenkeel::oper {

// Reasons of PodsReady=False.
inline constexpr char kReasonCreating[] = "Creating";
inline constexpr char kReasonQuota[] = "QuotaExceeded";
inline constexpr char kReasonCreateFailed[] = "CreateFailed";
inline constexpr char kReasonNameConflict[] = "NameConflict";
inline constexpr char kReasonScheduling[] = "Scheduling";
inline constexpr char kReasonUnschedulable[] = "Unschedulable";
inline constexpr char kReasonGangIncomplete[] = "GangIncomplete";
inline constexpr char kReasonImagePull[] = "ImagePull";
inline constexpr char kReasonContainerConfig[] = "ContainerConfig";
inline constexpr char kReasonStarting[] = "Starting";
inline constexpr char kReasonTerminating[] = "Terminating";
inline constexpr char kReasonBackOff[] = "BackOff";
inline constexpr char kReasonAllRunning[] = "AllRunning";

ConditionText judge_pods(const JobPlan& plan, const std::vector<Pod>& pods, const Observed& observed,
                         WallTimeValue now, Wake& wake);

// "a, b, c and 5 more"
std::string name_some(const std::vector<std::string>& names, std::size_t limit = 4);

}  // namespace evenkeel::oper
