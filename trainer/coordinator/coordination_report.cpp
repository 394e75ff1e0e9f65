// What the report says about the state of coordination.cpp.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "contract/job/sample_groups.h"
#include "trainer/coordinator/coordination.h"
#include "trainer/coordinator/remedies.h"

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

// The baseline was measured once; where one rank of now is much faster than it was then (the machine was busy with
// something else), it says nothing.
const Findings& Coordination::findings() const {
  if (findings_) return *findings_;
  constexpr double kSlowerThanNow = -0.10;  // fixed cost as a share of the step
  const DiagnosisWindow& window = ended() ? run_window_ : window_;
  DiagnosisInput input = diagnosis_input(window);
  findings_ = diagnose(window, input);
  // A job that ends soon after a change: what was found before it is more than nothing.
  if (ended() && before_change_ && findings_->diagnosis.verdict == contract::Diagnosis().verdict) {
    findings_ = before_change_;
    findings_->diagnosis.message += "; as it was before the change at step " + std::to_string(windows_from_step_);
    return *findings_;
  }
  const bool measured = input.baseline && input.baseline->source == BaselineSource::kMeasured;
  if (!measured || findings_->diagnosis.losses.fixed_cost.value_or(0) > kSlowerThanNow) return *findings_;
  input.baseline = cost_fit_.baseline(window.mean_samples());
  findings_ = diagnose(window, input);
  findings_->diagnosis.message += "; one rank alone was slower before the first step than ranks are now: not used";
  return *findings_;
}

// A batch that is worth a try, within the user's limit.
std::optional<BatchOffer> Coordination::batch_offer() const {
  const Findings& found = findings();
  const DiagnosisInput input = diagnosis_input(window_);
  const auto priced = price_remedies({found, input.job, input.ranks, ShareLimits(), noise_.scale()});
  for (const PricedRemedy& offer : priced) {
    if (offer.kind != RemedyKind::kLargerBatch || offer.remedy.state != contract::RemedyState::kProposed) continue;
    return BatchOffer{offer.amount, offer.remedy.predicted_gain, offer.remedy.predicted_loss_gain};
  }
  return std::nullopt;
}

std::vector<contract::Remedy> Coordination::remedies(const Findings& found) const {
  if (config_.spec.tune_mode == contract::TuneMode::kOff) return {};
  const DiagnosisInput input = diagnosis_input(ended() ? run_window_ : window_);
  std::vector<contract::Remedy> done =
      balancer_ ? balancer_->state().remedies : std::vector<contract::Remedy>();
  done.insert(done.end(), tuner_.done().begin(), tuner_.done().end());
  const ShareLimits limits = balancer_ ? balancer_->limits() : ShareLimits();
  std::vector<contract::Remedy> all =
      all_remedies(price_remedies({found, input.job, input.ranks, limits, noise_.scale()}), done);
  for (contract::Remedy& remedy : all) {
    remedy.predicted_gain = rounded(remedy.predicted_gain).value_or(0);
    remedy.measured_gain = rounded(remedy.measured_gain);
    remedy.predicted_loss_gain = rounded(remedy.predicted_loss_gain);
  }
  return all;
}

contract::Balance Coordination::balance_report(const Findings& found) const {
  contract::Balance balance = found.balance;
  balance.imbalance_ratio = rounded(balance.imbalance_ratio);
  balance.scaling_efficiency = rounded(balance.scaling_efficiency);
  switch (config_.spec.balance_mode) {
    case contract::BalanceMode::kOff:
      balance.mode = "Off";
      break;
    case contract::BalanceMode::kObserve:
      balance.mode = "Observe";
      break;
    case contract::BalanceMode::kRebalance:
      balance.mode = "Rebalance";
      break;
  }
  if (!balancer_) return balance;
  const BalanceState state = balancer_->state();
  balance.rebalances = state.rebalances;
  balance.balanced = state.balanced;
  balance.reason = state.reason;
  balance.loss_left = rounded(state.loss_left);
  return balance;
}

std::string Coordination::missing_text() const {
  std::string ranks;
  std::size_t missing = 0;
  for (std::size_t r = 0; r < static_cast<std::size_t>(wanted_); ++r) {
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
  p.skipped = static_cast<std::int64_t>(ledger_->poison().size());
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
  if (member.hello.rank >= wanted_ && !member.in_group) return "done";
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
    if (r < found.ranks.size() && found.ranks[r].present) {
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
  report.ranks = wanted_;
  report.joined = static_cast<int>(
      std::count_if(members_.begin(), members_.end(), [](const auto& m) { return m && m->connected; }));
  report.progress = progress(now);
  const Findings& found = findings();
  report.diagnosis = found.diagnosis;
  report.diagnosis.losses = rounded(found.diagnosis.losses);
  report.diagnosis.remedies = remedies(found);
  report.balance = balance_report(found);
  if (found.waterfall) report.waterfall = waterfall_report(*found.waterfall, found.baseline);
  report.history = history_.points();
  report.replicas = replicas(report.progress);
  report.checkpoint_step = checkpoint_step_;
  report.sharding = sharding_text();
  report.productive_seconds = time_account(now);
  report.failure = failure_;
  report.message = message_;
  if (message_.empty() && !begun_)
    report.message = "waiting for rank " + missing_text() + " of " + std::to_string(wanted_);
  if (message_.empty() && begun_ && !running())
    report.message = "all ranks are here, connecting and restoring";
  if (message_.empty() && running() && turn_ != Turn::kStepping)
    report.message = "a new group forms: " + group_reason_;
  if (message_.empty() && stage_ == JobStage::kStopping) report.message = "stopping: " + stop_reason_;
  return report;
}

}  // namespace evenkeel::trainer
