// Running: plans out, commits in. The start is in coordination_rendezvous.cpp, every end in
// coordination_end.cpp, what the report says in coordination_report.cpp.
#include "trainer/coordinator/coordination.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "contract/job/sample_groups.h"
#include "trainer/coordinator/coordination_internal.h"

namespace evenkeel::trainer {
namespace {

using contract::ExitCode;
using contract::JobStage;
using contract::MessageType;

// Plans in flight: the data reader looks ahead this far, and the job goes on while the coordinator is away.
constexpr std::int64_t kPlansAhead = 4;
constexpr double kRateSeconds = 15.0;   // of committed steps that make samples per second
constexpr std::size_t kMinRecent = 20;  // steps, however long

BalanceMode mode_of(contract::BalanceMode mode) {
  switch (mode) {
    case contract::BalanceMode::kOff:
      return BalanceMode::kOff;
    case contract::BalanceMode::kObserve:
      return BalanceMode::kObserve;
    case contract::BalanceMode::kRebalance:
      break;
  }
  return BalanceMode::kRebalance;
}

// All steps, but a bounded number of records: one for each rank and step.
WindowLimits whole_run(int ranks) {
  constexpr int kMaxRecords = 262144;
  WindowLimits limits;
  limits.max_steps = std::clamp(kMaxRecords / ranks, limits.steps, limits.max_steps);
  limits.steps = limits.max_steps;
  return limits;
}

}  // namespace

Coordination::Coordination(contract::TrainerConfig config, double now, CoordinationObserver* observer)
    : config_(std::move(config)),
      fence_{config_.attempt, config_.coordinator_incarnation, 1},
      observer_(observer),
      started_at_(now),
      failure_detection_s_(config_.spec.restart.failure_detection_seconds),
      wanted_(config_.ranks),
      size_(config_.ranks),
      members_(static_cast<std::size_t>(config_.ranks)),
      run_window_(whole_run(config_.ranks)) {
  TunerConfig tuner;
  tuner.applies = config_.spec.tune_mode == contract::TuneMode::kApply;
  tuner_ = Tuner(tuner);
  rule_.relative_below = config_.spec.straggler_threshold;
}

bool Coordination::ended() const {
  return stage_ == JobStage::kCompleted || stage_ == JobStage::kStopped || stage_ == JobStage::kFailed;
}

// ---- running

Coordination::Member* Coordination::member_of(ConnectionId id) {
  for (auto& member : members_) {
    if (member && member->connected && member->connection == id) return &*member;
  }
  return nullptr;
}

void Coordination::received(ConnectionId id, MessageType type, const base::Json& payload, double now) {
  Member* member = member_of(id);
  if (member == nullptr) return;  // refused, or replaced
  member->last_heard = now;
  const int rank = member->hello.rank;
  std::string error;
  // Decodes, then hands on; a message that does not decode ends the job, since the two sides no longer speak
  // one protocol.
  const auto with = [&](auto decoded, auto handle) {
    if (decoded.ok()) {
      handle(decoded.value());
    } else {
      error = decoded.error().message;
    }
  };
  switch (type) {
    case MessageType::kHeartbeat:
      with(contract::decode_heartbeat(payload), [&](const auto& beat) {
        if (member->step != beat.step || member->phase != beat.phase) member->phase_since = now;
        member->step = beat.step;
        member->phase = beat.phase;
        if (running()) member->quota.add(now, beat.quota_periods, beat.throttled_periods);
      });
      break;
    case MessageType::kReady:
      with(contract::decode_ready(payload), [&](const auto& m) { on_ready(rank, m, now); });
      break;
    case MessageType::kCommit:
      with(contract::decode_commit(payload), [&](const auto& m) { on_commit(rank, m, now); });
      break;
    case MessageType::kEvaluated:
      with(contract::decode_evaluated(payload), [&](const auto& m) { on_evaluated(rank, m); });
      break;
    case MessageType::kCheckpointed:
      with(contract::decode_checkpointed(payload), [&](const auto& m) { on_checkpointed(rank, m, now); });
      break;
    case MessageType::kStopRequest:
      with(contract::decode_stop_request(payload), [&](const auto& m) { on_stop_request(rank, m, now); });
      break;
    case MessageType::kPaused:
      with(contract::decode_paused(payload), [&](const auto& m) { on_paused(rank, m, now); });
      break;
    case MessageType::kBroken:
      with(contract::decode_broken(payload), [&](const auto& m) { on_broken(rank, m, now); });
      break;
    case MessageType::kFailure:
      with(contract::decode_failure(payload),
           [&](const auto& m) { suspect(rank, m.exit_code, m.reason, now); });
      break;
    default:
      error = "a message of type " + std::to_string(static_cast<int>(type)) + " does not come from a worker";
  }
  if (!error.empty()) {
    fail(rank, code(ExitCode::kInternal),
         "rank " + std::to_string(rank) + " sent what cannot be read: " + error, now);
  }
  finish_if_all_is_done(now);
}

void Coordination::on_ready(int rank, const contract::Ready& ready, double now) {
  Member& member = *members_[static_cast<std::size_t>(rank)];
  if (ended() || turn_ != Turn::kForming || !member.in_group || member.ready || ready.fence != fence_) return;
  member.ready = true;
  member.parameter_hash = ready.parameter_hash;
  member.restore_seconds = ready.restore_seconds;
  if (ready.preflight) preflight_ = ready.preflight;
  const bool all_ready = std::all_of(members_.begin(), members_.end(),
                                     [](const auto& m) { return !m || !m->in_group || m->ready; });
  if (all_ready) start_stepping(now);
}

// Equal bits everywhere, or no step at all.
void Coordination::start_stepping(double now) {
  const Member* first = nullptr;
  for (const auto& member : members_) {
    if (!member || !member->in_group) continue;
    if (first == nullptr) first = &*member;
    restore_s_ = std::max(restore_s_, member->restore_seconds);
    if (member->parameter_hash == first->parameter_hash) continue;
    return fail(member->hello.rank, code(ExitCode::kNumerical),
                "ParameterDrift: before step " + std::to_string(ledger_->committed().step + 1) + " rank " +
                    std::to_string(first->hello.rank) + " holds parameters " +
                    short_hash(first->parameter_hash) + ", rank " + std::to_string(member->hello.rank) +
                    " holds " + short_hash(member->parameter_hash),
                now);
  }
  if (observer_ != nullptr && !running_at_ && ledger_->committed().step > 0) observer_->on_restored(restore_s_);
  if (!running_at_) running_at_ = now;
  last_was_special_ = true;  // the first step has no predecessor
  turn_ = Turn::kStepping;
  turn_since_ = now;
  stage_ = stop_requested_ ? JobStage::kStopping : JobStage::kRunning;
  base::log_info("all ranks are ready",
                 {{"parameterHash", short_hash(first->parameter_hash)}, {"step", ledger_->committed().step}});
  if (!stop_requested_ || last_plan_) issue_plans(now);
}

// Nothing further is planned while another rank waits: it is taken in as soon as all that is planned is done.
void Coordination::issue_plans(double now) {
  if (next_drop_ && !may_rest(next_drop_->rank)) next_drop_.reset();
  const char* const reason = reason_for_another_group();
  if (reason != nullptr && !stop_requested_ && !ledger_->complete()) {
    if (!plans_.empty()) return;
    prepare_another_group();
    return regroup(reason, now);
  }
  while (ledger_->issued_step() < ledger_->committed().step + kPlansAhead) {
    auto plan = ledger_->plan_next(fence_);
    if (!plan) return;
    plans_[plan->step] = *plan;
    for (const auto& member : members_) {
      if (member && member->in_group && member->connected)
        outgoing_.push_back({member->connection, MessageType::kStepPlan, to_json(*plan)});
    }
  }
}

// Empty: it is what was planned.
std::string Coordination::commit_error(int rank, const contract::Commit& commit) const {
  const std::string who = "rank " + std::to_string(rank) + ", step " + std::to_string(commit.step) + ": ";
  const auto plan = plans_.find(commit.step);
  const Member& member = *members_[static_cast<std::size_t>(rank)];
  if (plan == plans_.end() || commit.step != member.committed + 1) {
    return who + "committed out of order, its last was step " + std::to_string(member.committed);
  }
  const auto& cuts = plan->second.cuts;
  const std::int64_t share = cuts[static_cast<std::size_t>(rank) + 1] - cuts[static_cast<std::size_t>(rank)];
  if (commit.samples != share) {
    return who + "took " + std::to_string(commit.samples) + " samples, planned were " + std::to_string(share);
  }
  if (commit.reduced_count != plan->second.planned()) {
    return who + "the reduction returned " + std::to_string(commit.reduced_count) +
           " samples, planned were " + std::to_string(plan->second.planned());
  }
  return "";
}

void Coordination::on_commit(int rank, const contract::Commit& commit, double now) {
  // Void: of an earlier group, or after the end.
  if (!running() || turn_ != Turn::kStepping || commit.fence != fence_) return;
  const std::string error = commit_error(rank, commit);
  if (!error.empty()) return fail(rank, code(ExitCode::kInternal), error, now);
  members_[static_cast<std::size_t>(rank)]->committed = commit.step;
  auto& step = commits_[commit.step];
  step.resize(members_.size());
  step[static_cast<std::size_t>(rank)] = commit;
  // Ranks overtake each other on their way to us by one step at most, but they do: the oldest step goes
  // first.
  while (!commits_.empty()) {
    for (const int r : ledger_->group()) {
      if (!commits_.begin()->second[static_cast<std::size_t>(r)]) return;
    }
    const auto by_rank = std::move(commits_.begin()->second);
    commits_.erase(commits_.begin());
    commit_step(by_rank, now);
  }
}

void Coordination::commit_step(const std::vector<std::optional<contract::Commit>>& by_rank, double now) {
  const contract::Commit& any = *by_rank[static_cast<std::size_t>(ledger_->group().front())];
  const contract::StepPlan plan = plans_.at(any.step);
  for (const auto& commit : by_rank) {
    if (commit) ledger_->mark_poison(commit->skipped_ids);
  }
  if (!count_step(plan, &any, now)) return;
  plans_.erase(plan.step);
  measure(plan, by_rank, now);
  barren_groups_ = 0;
  ++steps_in_group_;
  issue_plans(now);
}

// A committed step, by whomever it is known; null: nobody is left who could tell more than that it was done.
// False: the job has failed.
bool Coordination::count_step(const contract::StepPlan& plan, const contract::Commit* known, double now) {
  const base::Status status = ledger_->commit(plan.step);
  if (!status.ok()) {
    fail(-1, code(ExitCode::kInternal), status.error().message, now);
    return false;
  }
  last_plan_ = plan;
  contract::Commit commit;
  commit.step = plan.step;
  commit.reduced_count = plan.planned();
  if (known != nullptr) commit = *known;
  if (known != nullptr) recent_.push_back({now, static_cast<double>(plan.planned()), commit.loss_sum});
  while (recent_.size() > kMinRecent && recent_.front().at < now - kRateSeconds) recent_.pop_front();
  if (observer_ != nullptr) observer_->on_step(plan, commit);
  return prove(plan, known, now);
}

// A model that has learned from other samples than those of the data set is worth nothing.
bool Coordination::prove(const contract::StepPlan& plan, const contract::Commit* known, double now) {
  run_facts_.add(plan, known);
  oracle_->add(plan.planned(), known != nullptr ? std::optional(known->reduced_ids_hash) : std::nullopt);
  if (ledger_->committed().epoch == plan.epoch) return true;
  const std::int64_t proved = oracle_->epochs_proved();
  const std::int64_t passes = ledger_->epoch_samples(plan.epoch) / ledger_->config().train_samples;
  const std::optional<std::string> wrong = oracle_->close(plan.epoch, passes);
  const bool judged = wrong || oracle_->epochs_proved() > proved;
  run_facts_.end_epoch(ledger_->config().train_samples, judged ? std::optional(!wrong) : std::nullopt);
  if (wrong) fail(-1, code(ExitCode::kInternal), "the sample oracle: " + *wrong, now);
  return !wrong;
}

void Coordination::measure(const contract::StepPlan& plan,
                           const std::vector<std::optional<contract::Commit>>& by_rank, double now) {
  StepWork work;
  work.step = plan.step;
  double slowest = 0, own = 0, input = 0;
  bool special = last_was_special_ || plan.evaluate_after || plan.checkpoint_after;
  const double ranks = static_cast<double>(ledger_->group().size());
  for (std::size_t r = 0; r < by_rank.size(); ++r) {
    const std::optional<contract::Commit>& commit = by_rank[r];
    if (!commit) {
      work.ranks.push_back(away());
      continue;
    }
    const contract::PhaseSeconds& p = commit->phases;
    RankWork rank;
    rank.samples = static_cast<double>(commit->samples);
    rank.compute_seconds = p.forward + p.backward + p.optimizer;
    rank.input_seconds = p.input_wait + p.h2d_copy;
    rank.optimizer_seconds = p.optimizer;
    rank.work = commit->work;
    rank.no_core_seconds = commit->no_core_seconds;
    rank.no_core_reducing_seconds = commit->no_core_reducing_seconds;
    if (members_[r]) rank.throttled_share = members_[r]->quota.throttled_share().value_or(0);
    for (const double seconds : {p.input_wait, p.forward, p.backward, p.optimizer, p.eval, p.checkpoint})
      longest_phase_s_ = std::max(longest_phase_s_, seconds);
    slowest = std::max(slowest, rank.own_seconds());
    own += rank.own_seconds() / ranks;
    input += rank.input_seconds / ranks;
    work.step_seconds += commit->step_seconds / ranks;
    // A ring sends 2 (N - 1) / N of it.
    if (ranks > 1) gradient_bytes_ = static_cast<double>(commit->collective_bytes) * ranks / (2 * (ranks - 1));
    special = special || p.eval > 0 || p.checkpoint > 0;
    work.ranks.push_back(rank);
  }
  run_facts_.add_ranks(by_rank);
  input_wait_s_ += input;
  straggler_wait_s_ += slowest - own;
  measure_noise(by_rank);
  if (last_commit_at_ && !special) work.wall_seconds = now - *last_commit_at_;
  last_commit_at_ = now;
  last_was_special_ = plan.evaluate_after || plan.checkpoint_after;
  balance(work, special);
  if (!special) cost_fit_.add(work);
  history_.add(work);
  findings_.reset();
  if (plan.step >= windows_from_step_) {
    const StepWork judged = by_quota(work);
    run_window_.add(judged, special);
    window_.add(judged, special);
  }
  tune(work, plan, special);
}

// A rank that got a smaller share because its CPU limit stopped it is stopped no more. It is not fast for all that:
// its quota is what its share takes.
StepWork Coordination::by_quota(StepWork work) const {
  for (std::size_t r = 0; r < work.ranks.size(); ++r) {
    RankWork& rank = work.ranks[r];
    if (!rank.present) continue;
    const double allowed = std::min(work.step_seconds, balancer_->quota_seconds(r, rank.samples).value_or(0));
    rank.compute_seconds += std::max(0.0, allowed - rank.own_seconds());
  }
  return work;
}

// Only of steps in which every rank has measured it.
void Coordination::measure_noise(const std::vector<std::optional<contract::Commit>>& by_rank) {
  std::vector<double> samples, squares;
  double reduced = 0;
  for (const auto& commit : by_rank) {
    if (!commit || commit->samples == 0) continue;
    if (commit->own_gradient_square <= 0) return;
    samples.push_back(static_cast<double>(commit->samples));
    squares.push_back(commit->own_gradient_square);
    reduced = commit->reduced_gradient_square;
  }
  noise_.add(samples, squares, reduced);
}

// Steps before this one were of another kind: they say nothing of those that come.
void Coordination::forget_measurements(std::int64_t before_step) {
  if (run_window_.ready()) before_change_ = diagnose(run_window_, diagnosis_input(run_window_));
  windows_from_step_ = before_step;
  window_.restart();
  run_window_.restart();
  for (auto& member : members_) {
    if (member) member->quota.restart();
  }
}

// A larger batch, where the user's limit and its price allow it; taken back where it does not pay. One thing at a
// time: what the balancer has done must have been measured.
void Coordination::tune(const StepWork& work, const contract::StepPlan& plan, bool special) {
  if (tuner_.rests()) return;
  if (balancer_->measuring() || next_drop_) return tuner_.regrouped();
  if (!special && plan.planned() == plan.global_batch)
    tuner_.add(plan.global_batch, static_cast<double>(plan.planned()), work.step_seconds);
  // Pricing looks at all of the window: not after every step.
  constexpr std::int64_t kPriceEvery = 10;
  const bool price = window_.ready() && plan.step % kPriceEvery == 0;
  const auto change = tuner_.decide(ledger_->config().global_batch, price ? batch_offer() : std::nullopt);
  if (!change) return;
  base::log_info(change->reason, {{"step", plan.step}});
  next_batch_ = change->global_batch;
  // In its first steps plans are compiled and buffers grow.
  constexpr std::int64_t kSettlingSteps = 3;
  forget_measurements(ledger_->issued_step() + 1 + kSettlingSteps);
}

// Other shares from the next plan on, where that pays.
void Coordination::balance(const StepWork& work, bool special) {
  balancer_->add(work, special);
  const std::optional<BalanceDecision> decision = balancer_->decide(ledger_->issued_step() + 1);
  if (!decision) return;
  base::log_info(decision->reason, {{"fromStep", ledger_->issued_step() + 1},
                                    {"predictedGain", decision->predicted_gain}});
  if (decision->action == BalanceAction::kDropRank) {
    next_drop_ = decision;
  } else if (decision->action == BalanceAction::kBringBack) {
    auto& member = members_[static_cast<std::size_t>(decision->rank)];
    if (member) member->rests = false;
  } else {
    ledger_->set_division({decision->seconds_per_sample, balancer_config().limits});
    forget_measurements(ledger_->issued_step() + 1);
  }
}

BalancerConfig Coordination::balancer_config() const {
  const contract::TrainingJobSpec& spec = config_.spec;
  // With statistics over a rank's batch, a small share would make them poor.
  constexpr std::int64_t kLeastLocalBatch = 16;
  BalancerConfig config;
  config.mode = mode_of(spec.balance_mode);
  config.global_batch = ledger_->config().global_batch;
  // A rank that is left out waits for its group: without groups there is nothing to wait for.
  if (elastic() && spec.workers.min_replicas) config.min_ranks = static_cast<int>(ranks_at_least());
  config.cpu_quotas = std::any_of(members_.begin(), members_.end(),
                                  [](const auto& m) { return m && m->join.cpu_limit > 0; });
  config.limits.granule = ledger_->config().granule;
  if (contract::has_batch_norm(spec.model) &&
      spec.training.batch_norm.statistics == contract::BatchNormStatistics::kLocal)
    config.limits.floor = kLeastLocalBatch;
  return config;
}

void Coordination::on_evaluated(int rank, const contract::Evaluated& evaluated) {
  Member& member = *members_[static_cast<std::size_t>(rank)];
  member.evaluated = std::max(member.evaluated, evaluated.step);
  if (evaluation_ && evaluation_->step >= evaluated.step) return;  // reduced: all ranks say the same
  evaluation_ = evaluated;
  if (observer_ != nullptr) observer_->on_evaluated(evaluated);
  base::log_info("evaluated",
                 {{"step", evaluated.step}, {"correct", evaluated.correct}, {"samples", evaluated.samples}});
}

void Coordination::on_checkpointed(int rank, const contract::Checkpointed& checkpoint, double now) {
  Member& member = *members_[static_cast<std::size_t>(rank)];
  member.checkpointed = std::max(member.checkpointed, checkpoint.step);
  if (!checkpoint.error.empty() || !checkpoint.directory.empty())
    checkpoint_told_step_ = std::max(checkpoint_told_step_, checkpoint.step);
  if (!checkpoint.error.empty()) {
    base::log_error("a checkpoint was not written",
                    {{"step", checkpoint.step}, {"member", rank}, {"reason", checkpoint.error}});
    if (observer_ != nullptr) observer_->on_checkpoint(checkpoint);
    // The last one is the result: without it the job is not done.
    if (ledger_ && running() && ledger_->all_issued() && checkpoint.step == ledger_->issued_step()) {
      fail(rank, code(ExitCode::kIo), "the last checkpoint was not written: " + checkpoint.error, now);
    }
    return;
  }
  if (checkpoint.directory.empty()) return;  // this rank does not write
  checkpoint_step_ = std::max(checkpoint_step_, checkpoint.step);
  save_s_ += checkpoint.seconds;
  if (observer_ != nullptr) observer_->on_checkpoint(checkpoint);
}

}  // namespace evenkeel::trainer
