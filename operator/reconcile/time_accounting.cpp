#include "operator/reconcile/time_accounting.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "operator/reconcile/pods_ready.h"
#include "operator/reconcile/text.h"

namespace evenkeel::oper {
namespace {

constexpr char kProductive[] = "productive";
constexpr char kOther[] = "other";
constexpr char kSuspendedCause[] = "suspended";

std::int64_t suspended_seconds(const JobStatus& status) {
  return static_cast<std::int64_t>(
      base::double_at(base::child(status.time, "unproductiveSeconds"), kSuspendedCause));
}

std::int64_t stored_active_seconds(const JobStatus& status) {
  return static_cast<std::int64_t>(base::double_at(status.time, "activeSeconds"));
}

// Whole seconds, so that the sum of many bookings is exact.
std::int64_t unbooked_seconds(const JobStatus& status, WallTimeValue now) {
  if (!status.start_time || is_terminal(status.phase)) return 0;
  const auto passed =
      std::chrono::duration_cast<std::chrono::seconds>(floor_second(now) - floor_second(*status.start_time));
  return std::max<std::int64_t>(0,
                                passed.count() - stored_active_seconds(status) - suspended_seconds(status));
}

// What the job was waiting for while PodsReady said `reason`.
const char* cause_of_waiting(const std::string& reason) {
  if (reason == kReasonAllRunning) return "rendezvous";
  if (reason == kReasonImagePull) return "imagePull";
  if (reason == kReasonStarting || reason == kReasonContainerConfig) return "startup";
  if (reason == kReasonTerminating || reason == kReasonBackOff) return "restart";
  return "scheduling";
}

// Shares of the time in which ranks step; they add up to 1.
std::map<std::string, double> shares_of(const std::optional<contract::JobReport>& report) {
  static const std::vector<std::string> kCauses = {
      kProductive, "inputWait", "stragglerWait", "checkpointSave", "checkpointRestore", "recompute", kOther};
  std::map<std::string, double> shares;
  double sum = 0;
  for (const std::string& cause : kCauses) {
    const auto known =
        report ? report->productive_seconds.find(cause) : std::map<std::string, double>::const_iterator();
    if (!report || known == report->productive_seconds.end() || !std::isfinite(known->second) ||
        known->second <= 0)
      continue;
    shares[cause] = known->second;
    sum += known->second;
  }
  if (sum <= 0) return {{kOther, 1.0}};
  for (auto& [cause, share] : shares) share /= sum;
  return shares;
}

std::map<std::string, double> shares_in(const JobStatus& before,
                                        const std::optional<contract::JobReport>& report) {
  switch (before.phase) {
    case Phase::kRunning:
      return shares_of(report);
    case Phase::kSuspended:
      return {{kSuspendedCause, 1.0}};
    case Phase::kRestarting:
      // Scope Worker: the others go on.
      if (before.pods && report && report->stage == contract::JobStage::kRunning) return shares_of(report);
      return {{"restart", 1.0}};
    default:
      return {{cause_of_waiting(reason_of(before.conditions, kConditionPodsReady)), 1.0}};
  }
}

void add(Json& object, const std::string& key, double seconds) {
  object[key] = std::round((base::double_at(object, key) + seconds) * 1000) / 1000;
}

}  // namespace

std::int64_t active_seconds(const JobStatus& status, WallTimeValue now) {
  return stored_active_seconds(status) +
         (status.phase == Phase::kSuspended ? 0 : unbooked_seconds(status, now));
}

Json book_time(const JobStatus& before, const std::optional<contract::JobReport>& report, WallTimeValue now) {
  const std::int64_t seconds = unbooked_seconds(before, now);
  Json time = before.time.is_object() ? before.time : Json::object();
  if (seconds == 0) return time;
  if (!time.contains("unproductiveSeconds") || !time["unproductiveSeconds"].is_object())
    time["unproductiveSeconds"] = Json::object();
  if (before.phase != Phase::kSuspended) time["activeSeconds"] = stored_active_seconds(before) + seconds;
  for (const auto& [cause, share] : shares_in(before, report)) {
    const double part = share * static_cast<double>(seconds);
    if (cause == kProductive) {
      add(time, "productiveSeconds", part);
    } else {
      add(time["unproductiveSeconds"], cause, part);
    }
  }
  return time;
}

}  // namespace evenkeel::oper
