// Every way in which a job ends: done, stopped, a member lost, a member failed.
#include "trainer/coordinator/coordination.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "contract/job/restart_rules.h"
#include "trainer/coordinator/coordination_internal.h"

namespace evenkeel::trainer {
namespace {

using contract::ExitCode;
using contract::JobStage;
using contract::MessageType;

// SIGTERM reaches the pods of a suspended job within moments of each other.
constexpr double kStopSettleSeconds = 2.0;
// Aborted workers close by themselves; who has not by then is dead or stands still.
constexpr double kAbortSeconds = 2.0;
// Beyond spec.metrics.linger, for workers to write and leave.
constexpr double kLeaveSeconds = 10.0;
// Codes that say more than "try again" are passed on, for the restart rules to read.
int passed_on(int exit_code) {
  for (const ExitCode known : {ExitCode::kBadConfiguration, ExitCode::kBadData, ExitCode::kDeviceMissing,
                               ExitCode::kNumerical, ExitCode::kMismatch}) {
    if (exit_code == code(known)) return exit_code;
  }
  return code(ExitCode::kTryAgain);
}

}  // namespace

// ---- the end

void Coordination::stop(const std::string& reason, double now) {
  if (!elastic()) return stop_all(reason, now);
  if (!asked_to_stop_at_) asked_to_stop_at_ = now;
  base::log_info("asked to stop; who else is?", {{"reason", reason}});
  who_is_to_stop(now);
}

void Coordination::on_stop_request(int rank, const contract::StopRequest& request, double now) {
  if (!elastic()) return stop_all("rank " + std::to_string(rank) + " got " + request.reason, now);
  Member& member = *members_[static_cast<std::size_t>(rank)];
  if (!member.asked_to_stop_at) member.asked_to_stop_at = now;
  who_is_to_stop(now);
}

// A job that is suspended has all its processes asked at once. A pod that is deleted, drained or evicted is asked
// alone: it may go, and the others go on; and a coordinator that is asked alone leaves its ranks to the next one.
void Coordination::who_is_to_stop(double now) {
  if (ended() || stop_requested_ || left_) return;
  int here = 0, asked = 0;
  bool somebody_waits = false;
  for (auto& member : members_) {
    if (!member || !member->connected || (begun_ && !member->in_group && !member->rests)) continue;
    ++here;
    if (!member->asked_to_stop_at) continue;
    ++asked;
    const bool settled = now - *member->asked_to_stop_at >= kStopSettleSeconds;
    somebody_waits = somebody_waits || (settled && !std::exchange(member->leaving, settled));
  }
  if (here > 0 && asked == here) return stop_all("every rank was asked to stop", now);
  if (asked_to_stop_at_ && asked > 0) return stop_all("coordinator and ranks were asked to stop", now);
  if (asked_to_stop_at_ && now - *asked_to_stop_at_ >= kStopSettleSeconds) {
    base::log_info("asked to stop alone: another coordinator takes over from here");
    left_ = true;
    exit_code_ = code(ExitCode::kTryAgain);
  } else if (somebody_waits && turn_ == Turn::kStepping) {
    issue_plans(now);
  }
}

void Coordination::stop_all(const std::string& reason, double now) {
  if (ended() || stop_requested_) return;
  stop_requested_ = true;
  stop_reason_ = reason;
  base::log_info("asked to stop", {{"reason", reason}});
  if (!begun_) return finish(false, reason, now);
  ledger_->request_stop();
  if (stage_ == JobStage::kRunning) stage_ = JobStage::kStopping;
  if (turn_ == Turn::kStepping) issue_plans(now);
  finish_if_all_is_done(now);
}

void Coordination::finish_if_all_is_done(double now) {
  if (!running() || suspect_ || turn_ != Turn::kStepping) return;
  if (stop_requested_ && !last_plan_ && plans_.empty()) return finish(ledger_->complete(), stop_reason_, now);
  if (!ledger_->all_issued() || !plans_.empty()) return;
  if (last_plan_) {
    for (const auto& member : members_) {
      if (!member || !member->in_group) continue;
      if (last_plan_->evaluate_after && member->evaluated < last_plan_->step) return;
      if (last_plan_->checkpoint_after && member->checkpointed < last_plan_->step) return;
    }
  }
  finish(ledger_->complete(), ledger_->complete() ? "all steps are committed" : stop_reason_, now);
}

void Coordination::finish(bool completed, const std::string& reason, double now) {
  stage_ = completed ? JobStage::kCompleted : JobStage::kStopped;
  exit_code_ = code(completed ? ExitCode::kDone : ExitCode::kStopped);
  ended_at_ = now;
  findings_.reset();
  message_ = completed ? "completed" : "stopped: " + reason;
  // Nothing was left to do, maybe against what the user expects.
  if (completed && !last_plan_ && ledger_ && ledger_->committed().step > 0) {
    message_ += ": the checkpoint has already done " + std::to_string(ledger_->committed().epoch) + " epochs (" +
                std::to_string(ledger_->committed().step) + " steps); for more, raise training.epochs or steps";
  }
  base::log_info(message_, {{"step", ledger_ ? ledger_->committed().step : 0},
                            {"samples", ledger_ ? ledger_->samples() : 0}});
  send_to_all(MessageType::kFinish, to_json(contract::Finish{completed, reason}));
}

void Coordination::disconnected(ConnectionId id, const std::string& reason, double now) {
  Member* member = member_of(id);
  if (member == nullptr) return;
  const int rank = member->hello.rank;
  if (!begun_ && !ended()) {
    base::log_warning("a rank left before the start", {{"member", rank}, {"reason", reason}});
    members_[static_cast<std::size_t>(rank)].reset();
    return;
  }
  member->connected = false;
  if (!ended()) lost(rank, reason, now);
}

// A lost process is a cause, where it did not say why itself; what its neighbours report is the echo.
void Coordination::lost(int rank, const std::string& reason, double now) {
  Member& member = *members_[static_cast<std::size_t>(rank)];
  if (!elastic() && member.reported) return;
  // Asked to stop before the first plan: whoever leaves does what it was asked, and nothing is lost.
  if (stop_requested_ && plans_.empty() && !last_plan_ && turn_ == Turn::kStepping)
    return finish(ledger_->complete(), stop_reason_, now);
  const std::string text = "rank " + std::to_string(rank) + " was lost: " + reason;
  if (!elastic()) return fail(rank, code(ExitCode::kTryAgain), text, now);
  if (!std::exchange(member.in_group, false)) return;  // it only waited to be taken in
  ++losses_;
  base::log_warning(text, {{"member", rank}, {"generation", fence_.generation}});
  if (!member.reported) failure_ = contract::LastFailure{rank, code(ExitCode::kTryAgain), text};
  if (observer_ != nullptr) observer_->on_failure(*failure_);
  if (turn_ == Turn::kPausing) return form_if_all_paused(now);
  regroup(text, now);
}

// By the job's own rules: what cannot get better by trying again.
bool Coordination::ends_the_job(int exit_code) const {
  if (!elastic()) return exit_code != code(ExitCode::kTryAgain);
  return contract::action_for(config_.spec.restart, exit_code) == contract::RestartAction::kFailJob;
}

void Coordination::suspect(int rank, int exit_code, const std::string& reason, double now) {
  if (ended()) return;
  members_[static_cast<std::size_t>(rank)]->reported = true;
  const std::string text = "rank " + std::to_string(rank) + ": " + reason;
  if (ends_the_job(exit_code)) return fail(rank, exit_code, text, now);
  if (elastic() && begun_) {  // it is about to leave; the others go on
    failure_ = contract::LastFailure{rank, exit_code, text};
    return lost(rank, reason, now);
  }
  if (!suspect_) suspect_ = Suspect{{rank, exit_code, text}, now + kSettleSeconds};
}

void Coordination::fail(int rank, int exit_code, const std::string& reason, double now) {
  if (ended()) return;
  stage_ = JobStage::kFailed;
  exit_code_ = passed_on(exit_code);
  ended_at_ = now;
  findings_.reset();
  message_ = reason;
  failure_ = contract::LastFailure{rank, exit_code, reason};
  suspect_.reset();
  base::log_error("the attempt ends", {{"culprit", rank}, {"exitCode", exit_code}, {"reason", reason}});
  if (observer_ != nullptr) observer_->on_failure(*failure_);
  send_to_all(MessageType::kAbort, to_json(contract::Abort{reason, rank}));
}

void Coordination::tick(double now) {
  now_ = now;
  if (!begun_) findings_.reset();  // what is said of those that wait changes with time
  if (suspect_ && now >= suspect_->settle_at) {
    const contract::LastFailure failure = suspect_->failure;
    fail(failure.rank, failure.exit_code, failure.reason, now);
  }
  if (ended()) return;
  who_is_to_stop(now);
  drop_silent_and_hung(now);
  if (ended()) return;
  if (broken_at_ && now >= *broken_at_) regroup(std::exchange(broken_reason_, ""), now);
  if (begins_short(now)) begin(now);
}

double Coordination::next_deadline_in(double now) const {
  double next = now + failure_detection_s_;
  if (suspect_) next = std::min(next, suspect_->settle_at);
  if (broken_at_) next = std::min(next, *broken_at_);
  for (const auto& member : members_) {
    if (member && member->connected && !ended())
      next = std::min(next, member->last_heard + failure_detection_s_);
  }
  return std::max(0.0, next - now);
}

bool Coordination::done(double now) const {
  if (left_) return true;
  if (!ended()) return false;
  const bool anyone =
      std::any_of(members_.begin(), members_.end(), [](const auto& m) { return m && m->connected; });
  if (!anyone) return true;
  const double linger = stage_ == JobStage::kCompleted ? config_.spec.metrics_linger_seconds : 0;
  return now - *ended_at_ >= (stage_ == JobStage::kFailed ? kAbortSeconds : linger + kLeaveSeconds);
}

void Coordination::send_to_all(MessageType type, const base::Json& payload, bool close_after) {
  for (const auto& member : members_) {
    if (member && member->connected) outgoing_.push_back({member->connection, type, payload, close_after});
  }
}

}  // namespace evenkeel::trainer
