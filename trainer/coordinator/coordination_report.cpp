// What the report says about the state of coordination.cpp.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "trainer/coordinator/coordination.h"

namespace evenkeel::trainer {
namespace {

using contract::JobStage;

constexpr std::size_t kLossSteps = 20;  // the loss is the mean over the samples of this many steps

// Three digits, so that columns read well.
std::optional<double> rounded(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return std::round(*value * 1000) / 1000;
}

// Rounded shares still add up to 1: compute is what is left.
contract::Losses rounded(const contract::Losses& losses) {
  contract::Losses r{losses.compute, rounded(losses.fixed_cost), rounded(losses.input_wait),
                     rounded(losses.imbalance), rounded(losses.communication)};
  if (!losses.compute) return r;
  r.compute = rounded(1 - r.fixed_cost.value_or(0) - r.input_wait.value_or(0) - r.imbalance.value_or(0) -
                      r.communication.value_or(0));
  return r;
}

}  // namespace

const Findings& Coordination::findings() const {
  if (!findings_) findings_ = diagnose(ended() ? run_window_ : window_, rule_, std::nullopt);
  return *findings_;
}

std::string Coordination::missing_text() const {
  std::string ranks;
  std::size_t missing = 0;
  for (std::size_t r = 0; r < members_.size(); ++r) {
    if (members_[r]) continue;
    if (++missing <= 16) ranks += (ranks.empty() ? "" : ", ") + std::to_string(r);
  }
  if (missing > 16) ranks += ", ... (" + std::to_string(missing) + " in all)";
  return ranks;
}

// By the coordinator's clock, evaluations and checkpoints included: what the job really does in a second.
std::optional<double> Coordination::samples_per_second() const {
  if (recent_.size() < 2) return std::nullopt;
  const double elapsed = recent_.back().at - recent_.front().at;
  if (elapsed <= 0) return std::nullopt;
  double samples = 0;  // of all but the first, whose time lies before the first moment
  for (std::size_t i = 1; i < recent_.size(); ++i) samples += recent_[i].samples;
  return samples / elapsed;
}

contract::Progress Coordination::progress(double now) const {
  contract::Progress p;
  if (!ledger_) return p;
  const LedgerPosition& at = ledger_->committed();
  p.epoch = at.epoch;
  p.step = at.step;
  p.target_steps = ledger_->target_steps();
  p.samples = ledger_->samples();
  double loss = 0, samples = 0;
  for (std::size_t i = recent_.size() - std::min(recent_.size(), kLossSteps); i < recent_.size(); ++i) {
    loss += recent_[i].loss_sum;
    samples += recent_[i].samples;
  }
  if (samples > 0 && std::isfinite(loss)) p.loss = loss / samples;
  if (evaluation_ && evaluation_->samples > 0) {
    p.eval_loss = evaluation_->loss_sum / static_cast<double>(evaluation_->samples);
    p.accuracy = static_cast<double>(evaluation_->correct) / static_cast<double>(evaluation_->samples);
  }
  p.samples_per_second = samples_per_second();
  if (running() && running_at_ && p.samples_per_second && !recent_.empty()) {
    const double steps_in_window = static_cast<double>(recent_.size() - 1);
    const double step_seconds = (recent_.back().at - recent_.front().at) / steps_in_window;
    p.eta_seconds = std::max(
        0.0, static_cast<double>(p.target_steps - p.step) * step_seconds - (now - recent_.back().at));
  }
  return p;
}

std::string Coordination::state_of(const Member& member) const {
  if (stage_ == JobStage::kCompleted || stage_ == JobStage::kStopped) return "done";
  if (!member.connected) return "lost";
  if (!member.in_group || !member.ready) return "joined";
  return running() ? "stepping" : "ready";
}

std::vector<contract::ReplicaReport> Coordination::replicas(const contract::Progress& progress) const {
  std::vector<contract::ReplicaReport> replicas;
  const Findings& found = findings();
  for (std::size_t r = 0; r < members_.size(); ++r) {
    if (!members_[r]) continue;
    const Member& member = *members_[r];
    contract::ReplicaReport replica;
    replica.rank = static_cast<int>(r);
    replica.pod = member.join.pod;
    replica.node = member.join.node;
    replica.state = state_of(member);
    replica.threads = member.join.threads;
    replica.cpu_limit = member.join.cpu_limit;
    if (ledger_) {
      if (r < ledger_->shard_samples().size()) replica.shard_samples = ledger_->shard_samples()[r];
      if (r < ledger_->consumed().size()) replica.consumed = ledger_->consumed()[r];
    }
    if (r < found.ranks.size()) {
      replica.busy_seconds = found.ranks[r].busy_seconds;
      replica.share = rounded(found.ranks[r].share);
      replica.relative_performance = rounded(found.ranks[r].relative_performance);
      if (progress.samples_per_second)
        replica.samples_per_second = found.ranks[r].share * *progress.samples_per_second;
    }
    replicas.push_back(std::move(replica));
  }
  return replicas;
}

// Where the time of this attempt went, as far as it can be seen from here.
std::map<std::string, double> Coordination::time_account(double now) const {
  const double end = ended_at_.value_or(now);
  std::map<std::string, double> account;
  account["rendezvous"] = begun_at_.value_or(end) - started_at_;
  if (!begun_at_) return account;
  const double ring = running_at_.value_or(end) - *begun_at_;
  account["checkpointRestore"] = std::min(restore_s_, ring);
  account["startup"] = ring - account["checkpointRestore"];
  if (!running_at_) return account;
  account["inputWait"] = input_wait_s_;
  account["stragglerWait"] = straggler_wait_s_;
  account["checkpointSave"] = save_s_;
  account["productive"] = std::max(0.0, end - *running_at_ - input_wait_s_ - straggler_wait_s_ - save_s_);
  return account;
}

contract::JobReport Coordination::report(double now) const {
  contract::JobReport report;
  report.job_uid = config_.job_uid;
  report.attempt = fence_.attempt;
  report.coordinator_incarnation = fence_.coordinator_incarnation;
  report.generation = fence_.generation;
  report.stage = stage_;
  report.ranks = config_.ranks;
  report.joined = static_cast<int>(
      std::count_if(members_.begin(), members_.end(), [](const auto& m) { return m && m->connected; }));
  report.progress = progress(now);
  const Findings& found = findings();
  report.diagnosis = found.diagnosis;
  report.diagnosis.losses = rounded(found.diagnosis.losses);
  report.balance = found.balance;
  report.balance.imbalance_ratio = rounded(found.balance.imbalance_ratio);
  report.balance.scaling_efficiency = rounded(found.balance.scaling_efficiency);
  report.replicas = replicas(report.progress);
  report.checkpoint_step = checkpoint_step_;
  report.productive_seconds = time_account(now);
  report.failure = failure_;
  report.message = message_;
  if (message_.empty() && !begun_)
    report.message = "waiting for rank " + missing_text() + " of " + std::to_string(config_.ranks);
  if (message_.empty() && begun_ && !running())
    report.message = "all ranks are here, connecting and restoring";
  if (message_.empty() && running() && turn_ != Turn::kStepping)
    report.message = "a new group forms: " + group_reason_;
  if (message_.empty() && stage_ == JobStage::kStopping) report.message = "stopping: " + stop_reason_;
  return report;
}

}  // namespace evenkeel::trainer
