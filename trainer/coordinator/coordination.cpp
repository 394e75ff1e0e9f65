// Events and decisions. What the report says is in coordination_report.cpp.
#include "trainer/coordinator/coordination.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "contract/job/sample_groups.h"

namespace evenkeel::trainer {
namespace {

using contract::ExitCode;
using contract::JobStage;
using contract::MessageType;

// Plans in flight: the data reader looks ahead this far, and the job goes on while the coordinator is away.
constexpr std::int64_t kPlansAhead = 4;
// When a rank dies its neighbours fail too, and either may be heard first: wait this long for a better
// culprit.
constexpr double kSettleSeconds = 0.5;
// Aborted workers close by themselves; who has not by then is dead or stands still.
constexpr double kAbortSeconds = 2.0;
// Beyond spec.metrics.linger, for workers to write and leave.
constexpr double kLeaveSeconds = 10.0;
constexpr double kRateSeconds = 15.0;   // of committed steps that make samples per second
constexpr std::size_t kMinRecent = 20;  // steps, however long

constexpr int code(ExitCode exit_code) {
  return static_cast<int>(exit_code);
}

// Codes that say more than "try again" are passed on, for the restart rules to read.
int passed_on(int exit_code) {
  for (const ExitCode known : {ExitCode::kBadConfiguration, ExitCode::kBadData, ExitCode::kDeviceMissing,
                               ExitCode::kNumerical, ExitCode::kMismatch}) {
    if (exit_code == code(known)) return exit_code;
  }
  return code(ExitCode::kTryAgain);
}

// What must be equal on all ranks before any collective.
auto identity_of(const contract::Join& join) {
  return std::tie(join.plan_hash, join.byte_order, join.train_samples, join.eval_samples);
}

std::string short_hash(const std::string& hash) {
  return hash.substr(0, 12);
}

// The first layer or section that differs, by name.
std::string differing_part(const contract::Join& a, const contract::Join& b) {
  for (std::size_t i = 0; i < std::max(a.plan_parts.size(), b.plan_parts.size()); ++i) {
    if (i >= a.plan_parts.size()) return "\"" + b.plan_parts[i].first + "\" is only in the other";
    if (i >= b.plan_parts.size()) return "\"" + a.plan_parts[i].first + "\" is not in the other";
    if (a.plan_parts[i] != b.plan_parts[i])
      return "the first difference is in \"" + a.plan_parts[i].first + "\"";
  }
  return "no part of it differs by name";
}

std::string difference_text(int rank, const contract::Join& mine, int other_rank,
                            const contract::Join& other) {
  const std::string who = "rank " + std::to_string(rank) + " was refused: its ";
  const std::string than = ", rank " + std::to_string(other_rank) + " has ";
  if (mine.byte_order != other.byte_order)
    return who + "byte order is " + mine.byte_order + than + other.byte_order;
  if (mine.plan_hash != other.plan_hash) {
    return who + "plan hash is " + short_hash(mine.plan_hash) + than + short_hash(other.plan_hash) + "; " +
           differing_part(mine, other) + ". All ranks need the same model, configuration and trainer version";
  }
  if (mine.train_samples != other.train_samples) {
    return who + "training split has " + std::to_string(mine.train_samples) + " samples" + than +
           std::to_string(other.train_samples) + ". All ranks must read the same data set";
  }
  return who + "evaluation split has " + std::to_string(mine.eval_samples) + " samples" + than +
         std::to_string(other.eval_samples) + ". All ranks must read the same data set";
}

// All steps, but a bounded number of records: one for each rank and step.
WindowLimits whole_run(int ranks) {
  constexpr int kMaxRecords = 262144;
  WindowLimits limits;
  limits.max_steps = std::clamp(kMaxRecords / ranks, limits.steps, limits.max_steps);
  limits.steps = limits.max_steps;
  return limits;
}

LedgerConfig ledger_config(const contract::TrainerConfig& config, const contract::Join& join) {
  const contract::TrainingJobSpec& spec = config.spec;
  LedgerConfig ledger;
  ledger.train_samples = join.train_samples;
  ledger.eval_samples = join.eval_samples;
  ledger.ranks = config.ranks;
  ledger.global_batch = spec.global_batch();
  ledger.granule = contract::share_granule(spec);
  ledger.epochs = spec.training.epochs;
  ledger.steps = spec.training.steps;
  ledger.evaluate_every = spec.training.evaluate_every;
  ledger.checkpoints = !spec.checkpoint.path.empty();
  ledger.checkpoint_every_steps = spec.checkpoint.every_steps;
  ledger.checkpoint_on_stop = spec.checkpoint.on_suspend;
  return ledger;
}

}  // namespace

Coordination::Coordination(contract::TrainerConfig config, double now, CoordinationObserver* observer)
    : config_(std::move(config)),
      fence_{config_.attempt, config_.coordinator_incarnation, 1},
      observer_(observer),
      started_at_(now),
      failure_detection_s_(config_.spec.restart.failure_detection_seconds),
      members_(static_cast<std::size_t>(config_.ranks)),
      run_window_(whole_run(config_.ranks)) {
  rule_.relative_below = config_.spec.straggler_threshold;
}

bool Coordination::ended() const {
  return stage_ == JobStage::kCompleted || stage_ == JobStage::kStopped || stage_ == JobStage::kFailed;
}

// ---- rendezvous

// Why this one may not take part at all; empty: it may.
std::string Coordination::refusal_of(const contract::Hello& hello) const {
  const std::string who = "rank " + std::to_string(hello.rank);
  if (ended()) return who + " came after the end: " + message_;
  if (hello.attempt != config_.attempt) {
    return who + " is of attempt " + std::to_string(hello.attempt) + ", the job is at attempt " +
           std::to_string(config_.attempt);
  }
  if (hello.rank < 0 || hello.rank >= config_.ranks) {
    return who + " is not one of the job's " + std::to_string(config_.ranks) + " ranks";
  }
  const auto& holder = members_[static_cast<std::size_t>(hello.rank)];
  if (!holder) return "";
  const bool same_process =
      hello.incarnation == holder->hello.incarnation && hello.pod_uid == holder->hello.pod_uid;
  if (hello.incarnation > holder->hello.incarnation || (same_process && !begun_)) return "";
  return who + " of incarnation " + std::to_string(hello.incarnation) + " came, but incarnation " +
         std::to_string(holder->hello.incarnation) + " holds the rank";
}

void Coordination::refuse(ConnectionId id, ExitCode exit_code, const std::string& reason) {
  base::log_warning(reason, {{"exitCode", code(exit_code)}});
  outgoing_.push_back({id, MessageType::kRefused, to_json(contract::Refused{code(exit_code), reason}), true});
}

void Coordination::joined(ConnectionId id, const contract::Hello& hello, const contract::Join& join,
                          double now) {
  const std::string refusal = refusal_of(hello);
  if (!refusal.empty()) return refuse(id, ExitCode::kTryAgain, refusal);
  auto& holder = members_[static_cast<std::size_t>(hello.rank)];
  if (holder) {
    refuse(holder->connection, ExitCode::kTryAgain,
           "rank " + std::to_string(hello.rank) + " was taken over by incarnation " +
               std::to_string(hello.incarnation));
    holder->connected = false;
  }
  if (begun_) {  // its predecessor's work is in the ring that all others stand in
    refuse(id, ExitCode::kTryAgain,
           "rank " + std::to_string(hello.rank) + " is replaced: the job starts again with it");
    return fail(hello.rank, code(ExitCode::kTryAgain),
                "rank " + std::to_string(hello.rank) + " was replaced by a new process", now);
  }
  Member member;
  member.connection = id;
  member.hello = hello;
  member.join = join;
  member.last_heard = now;
  holder = std::move(member);
  base::log_info("rank joined", {{"member", hello.rank},
                                 {"node", join.node},
                                 {"address", join.data_address},
                                 {"planHash", short_hash(join.plan_hash)},
                                 {"checkpointStep", join.checkpoint.step}});
  for (const std::string& skipped : join.checkpoint.skipped) {
    base::log_warning("a checkpoint was skipped", {{"member", hello.rank}, {"reason", skipped}});
  }
  refuse_the_different();
  begin_if_all_are_here(now);
}

// The plan of more than half of the ranks is the job's; when all are here and none has that many, the lowest
// rank's.
void Coordination::refuse_the_different() {
  const auto same_as = [&](const Member& reference) {
    return std::count_if(members_.begin(), members_.end(), [&](const auto& member) {
      return member && identity_of(member->join) == identity_of(reference.join);
    });
  };
  const Member* reference = nullptr;
  for (const auto& member : members_) {
    if (member && same_as(*member) * 2 > config_.ranks) reference = &*member;
  }
  const bool all_here =
      std::all_of(members_.begin(), members_.end(), [](const auto& m) { return m.has_value(); });
  if (reference == nullptr && all_here) reference = &*members_.front();
  if (reference == nullptr) return;
  const int reference_rank = reference->hello.rank;
  for (auto& member : members_) {
    if (!member || identity_of(member->join) == identity_of(reference->join)) continue;
    const int rank = member->hello.rank;
    const std::string reason = difference_text(rank, member->join, reference_rank, reference->join);
    refuse(member->connection, ExitCode::kMismatch, reason);
    failure_ = contract::LastFailure{rank, code(ExitCode::kMismatch), reason};
    if (observer_ != nullptr) observer_->on_failure(*failure_);
    member.reset();  // the right worker may take its place
  }
}

void Coordination::begin_if_all_are_here(double now) {
  if (begun_ || ended()) return;
  if (std::all_of(members_.begin(), members_.end(), [](const auto& member) { return member.has_value(); }))
    begin(now);
}

void Coordination::begin(double now) {
  begun_ = true;
  begun_at_ = now;
  failure_.reset();
  auto ledger = Ledger::make(ledger_config(config_, members_.front()->join));
  if (!ledger.ok()) return fail(-1, code(ExitCode::kBadConfiguration), ledger.error().message, now);
  const Member* best = nullptr;
  for (const auto& member : members_) {
    const std::int64_t step = member->join.checkpoint.step;
    if (step > 0 && (best == nullptr || step > best->join.checkpoint.step)) best = &*member;
  }
  contract::Membership membership;
  membership.fence = fence_;
  if (best != nullptr) {
    const base::Status restored = ledger->restore(best->join.checkpoint);
    if (!restored.ok())
      return fail(best->hello.rank, code(ExitCode::kBadData), restored.error().message, now);
    membership.restore_rank = best->hello.rank;
    membership.restore_step = best->join.checkpoint.step;
    checkpoint_step_ = membership.restore_step;
  }
  ledger_ = std::move(ledger).value();
  membership.target_steps = ledger_->target_steps();
  for (const auto& member : members_) membership.peers.push_back(member->join.data_address);
  for (auto& member : members_) {
    membership.rank = member->hello.rank;
    member->committed = membership.restore_step;
    member->last_heard = now;
    outgoing_.push_back({member->connection, MessageType::kMembership, to_json(membership)});
  }
  base::log_info("all ranks have joined", {{"ranks", config_.ranks},
                                           {"targetSteps", membership.target_steps},
                                           {"restoreStep", membership.restore_step}});
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
        member->step = beat.step;
        member->phase = beat.phase;
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
      with(contract::decode_stop_request(payload),
           [&](const auto& m) { stop("rank " + std::to_string(rank) + " got " + m.reason, now); });
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
  if (ended() || !begun_ || member.ready || ready.fence != fence_) return;
  member.ready = true;
  member.parameter_hash = ready.parameter_hash;
  member.restore_seconds = ready.restore_seconds;
  if (std::all_of(members_.begin(), members_.end(), [](const auto& m) { return m->ready; }))
    start_stepping(now);
}

// Equal bits everywhere, or no step at all.
void Coordination::start_stepping(double now) {
  const Member& first = *members_.front();
  for (const auto& member : members_) {
    restore_s_ = std::max(restore_s_, member->restore_seconds);
    if (member->parameter_hash == first.parameter_hash) continue;
    return fail(member->hello.rank, code(ExitCode::kNumerical),
                "ParameterDrift: before the first step rank 0 holds parameters " +
                    short_hash(first.parameter_hash) + ", rank " + std::to_string(member->hello.rank) +
                    " holds " + short_hash(member->parameter_hash),
                now);
  }
  if (observer_ != nullptr && ledger_->committed().step > 0) observer_->on_restored(restore_s_);
  running_at_ = now;
  last_was_special_ = true;  // the first step has no predecessor
  stage_ = stop_requested_ ? JobStage::kStopping : JobStage::kRunning;
  base::log_info("all ranks are ready",
                 {{"parameterHash", short_hash(first.parameter_hash)}, {"step", ledger_->committed().step}});
  if (!stop_requested_) issue_plans();
}

void Coordination::issue_plans() {
  while (ledger_->issued_step() < ledger_->committed().step + kPlansAhead) {
    auto plan = ledger_->plan_next(fence_);
    if (!plan) return;
    plans_[plan->step] = *plan;
    send_to_all(MessageType::kStepPlan, to_json(*plan));
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
  if (!running() || commit.fence != fence_) return;  // void: of an earlier generation, or after the end
  const std::string error = commit_error(rank, commit);
  if (!error.empty()) return fail(rank, code(ExitCode::kInternal), error, now);
  members_[static_cast<std::size_t>(rank)]->committed = commit.step;
  auto& step = commits_[commit.step];
  step.resize(members_.size());
  step[static_cast<std::size_t>(rank)] = commit;
  // Ranks overtake each other on their way to us by one step at most, but they do: the oldest step goes
  // first.
  while (!commits_.empty()) {
    auto& [number, by_rank] = *commits_.begin();
    if (!std::all_of(by_rank.begin(), by_rank.end(), [](const auto& c) { return c.has_value(); })) return;
    std::vector<contract::Commit> complete;
    for (auto& one : by_rank) complete.push_back(std::move(*one));
    commits_.erase(commits_.begin());
    commit_step(std::move(complete), now);
  }
}

void Coordination::commit_step(std::vector<contract::Commit> commits, double now) {
  const std::int64_t step = commits.front().step;
  const contract::StepPlan plan = plans_.at(step);
  const base::Status status = ledger_->commit(step);
  if (!status.ok()) return fail(-1, code(ExitCode::kInternal), status.error().message, now);
  plans_.erase(step);
  last_plan_ = plan;
  measure(plan, commits, now);
  if (observer_ != nullptr) observer_->on_step(plan, commits.front());
  issue_plans();
}

void Coordination::measure(const contract::StepPlan& plan, const std::vector<contract::Commit>& commits,
                           double now) {
  StepWork work;
  double slowest = 0, own = 0, input = 0;
  bool special = last_was_special_ || plan.evaluate_after || plan.checkpoint_after;
  const double ranks = static_cast<double>(commits.size());
  for (const contract::Commit& commit : commits) {
    const contract::PhaseSeconds& p = commit.phases;
    const RankWork rank{static_cast<double>(commit.samples), p.forward + p.backward + p.optimizer,
                        p.input_wait + p.h2d_copy};
    slowest = std::max(slowest, rank.own_seconds());
    own += rank.own_seconds() / ranks;
    input += rank.input_seconds / ranks;
    work.step_seconds += commit.step_seconds / ranks;
    special = special || p.eval > 0 || p.checkpoint > 0;
    work.ranks.push_back(rank);
  }
  input_wait_s_ += input;
  straggler_wait_s_ += slowest - own;
  if (last_commit_at_ && !special) work.wall_seconds = now - *last_commit_at_;
  last_commit_at_ = now;
  last_was_special_ = plan.evaluate_after || plan.checkpoint_after;
  run_window_.add(work, special);
  window_.add(std::move(work), special);
  findings_.reset();
  recent_.push_back({now, static_cast<double>(plan.planned()), commits.front().loss_sum});
  while (recent_.size() > kMinRecent && recent_.front().at < now - kRateSeconds) recent_.pop_front();
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

// ---- the end

void Coordination::stop(const std::string& reason, double now) {
  if (ended() || stop_requested_) return;
  stop_requested_ = true;
  stop_reason_ = reason;
  base::log_info("asked to stop", {{"reason", reason}});
  if (!begun_) return finish(false, reason, now);
  ledger_->request_stop();
  if (stage_ == JobStage::kRunning) {
    stage_ = JobStage::kStopping;
    issue_plans();
  }
  finish_if_all_is_done(now);
}

void Coordination::finish_if_all_is_done(double now) {
  if (!running() || suspect_) return;
  if (stop_requested_ && !last_plan_ && plans_.empty()) return finish(ledger_->complete(), stop_reason_, now);
  if (!ledger_->all_issued() || !plans_.empty()) return;
  if (last_plan_) {
    for (const auto& member : members_) {
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
  if (members_[static_cast<std::size_t>(rank)]->reported) return;
  fail(rank, code(ExitCode::kTryAgain), "rank " + std::to_string(rank) + " was lost: " + reason, now);
}

void Coordination::suspect(int rank, int exit_code, const std::string& reason, double now) {
  if (ended()) return;
  members_[static_cast<std::size_t>(rank)]->reported = true;
  const std::string text = "rank " + std::to_string(rank) + ": " + reason;
  if (exit_code != code(ExitCode::kTryAgain)) return fail(rank, exit_code, text, now);
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
  if (suspect_ && now >= suspect_->settle_at) {
    const contract::LastFailure failure = suspect_->failure;
    fail(failure.rank, failure.exit_code, failure.reason, now);
  }
  if (ended()) return;
  for (auto& member : members_) {
    if (!member || !member->connected || now - member->last_heard <= failure_detection_s_) continue;
    const int rank = member->hello.rank;
    const std::string reason =
        "nothing heard for " + std::to_string(config_.spec.restart.failure_detection_seconds) + " s";
    refuse(member->connection, ExitCode::kTryAgain, "rank " + std::to_string(rank) + ": " + reason);
    disconnected(member->connection, reason, now);
  }
}

double Coordination::next_deadline_in(double now) const {
  double next = now + failure_detection_s_;
  if (suspect_) next = std::min(next, suspect_->settle_at);
  for (const auto& member : members_) {
    if (member && member->connected && !ended())
      next = std::min(next, member->last_heard + failure_detection_s_);
  }
  return std::max(0.0, next - now);
}

bool Coordination::done(double now) const {
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
