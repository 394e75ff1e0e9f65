// Rendezvous: who may join, and the start when all are there.
#include "trainer/coordinator/coordination.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "contract/job/sample_groups.h"
#include "trainer/coordinator/coordination_internal.h"

namespace evenkeel::trainer {
namespace {

using contract::ExitCode;
using contract::JobStage;
using contract::MessageType;

// What must be equal on all ranks before any collective.
auto identity_of(const contract::Join& join) {
  return std::tie(join.plan_hash, join.byte_order, join.train_samples, join.eval_samples, join.file_samples);
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

std::string difference_text(int rank, const contract::Join& mine, const std::string& whose,
                            const contract::Join& other) {
  const std::string who = "rank " + std::to_string(rank) + " was refused: its ";
  const std::string than = ", " + whose + " has ";
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
  if (mine.file_samples != other.file_samples) {
    return who + "training split has " + std::to_string(mine.file_samples.size()) + " files" + than +
           std::to_string(other.file_samples.size()) +
           (mine.file_samples.size() == other.file_samples.size() ? ", but with other numbers of samples" : "") +
           ". All ranks must read the same data set";
  }
  return who + "evaluation split has " + std::to_string(mine.eval_samples) + " samples" + than +
         std::to_string(other.eval_samples) + ". All ranks must read the same data set";
}

// An elastic job waits this long for further ranks once the minimum is there.
constexpr double kElasticStartSeconds = 5.0;

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
  ledger.dealing = dealing_of(spec.dataset.sharding, join);
  ledger.passes = config.ranks;
  ledger.file_samples = join.file_samples;
  ledger.shuffle = spec.dataset.shuffle;
  ledger.shuffle_seed = spec.dataset.shuffle_seed;
  return ledger;
}

}  // namespace

// ---- rendezvous

// Why this one may not take part at all; empty: it may.
std::string Coordination::refusal_of(const contract::Hello& hello) const {
  const std::string who = "rank " + std::to_string(hello.rank);
  if (ended()) return who + " came after the end: " + message_;
  if (hello.attempt != config_.attempt) {
    return who + " is of attempt " + std::to_string(hello.attempt) + ", the job is at attempt " +
           std::to_string(config_.attempt);
  }
  if (hello.rank < 0 || hello.rank >= wanted_) {
    return who + " is not one of the job's " + std::to_string(wanted_) + " ranks";
  }
  const auto& holder = members_[static_cast<std::size_t>(hello.rank)];
  if (!holder) return "";
  const bool same_process =
      hello.incarnation == holder->hello.incarnation && hello.pod_uid == holder->hello.pod_uid;
  const bool comes_back = same_process && (!begun_ || elastic() || !holder->connected);
  if (hello.incarnation > holder->hello.incarnation || comes_back) return "";
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
  if (reference_ && identity_of(join) != identity_of(*reference_)) {
    return refuse(id, ExitCode::kMismatch, difference_text(hello.rank, join, "the job", *reference_));
  }
  if (!make_room(id, hello, now)) return;
  Member member;
  member.connection = id;
  member.hello = hello;
  member.join = join;
  member.last_heard = member.phase_since = now;
  last_join_at_ = now;
  members_[static_cast<std::size_t>(hello.rank)] = std::move(member);
  if (balancer_) balancer_->reset_rank(hello.rank);
  cost_fit_.reset_rank(hello.rank);
  base::log_info("rank joined", {{"member", hello.rank},
                                 {"incarnation", hello.incarnation},
                                 {"node", join.node},
                                 {"address", join.data_address},
                                 {"planHash", short_hash(join.plan_hash)},
                                 {"checkpointStep", join.checkpoint.step}});
  for (const std::string& skipped : join.checkpoint.skipped) {
    base::log_warning("a checkpoint was skipped", {{"member", hello.rank}, {"reason", skipped}});
  }
  if (!begun_) {
    refuse_the_different();
    if (!ended() && all_are_here()) begin(now);
  } else if (turn_ == Turn::kStepping) {
    issue_plans(now);
  } else {
    form_if_all_paused(now);
  }
}

// The rank's last process gives way to a newer one. False: that ended the attempt.
bool Coordination::make_room(ConnectionId id, const contract::Hello& hello, double now) {
  const auto& holder = members_[static_cast<std::size_t>(hello.rank)];
  if (holder && holder->connected) {
    refuse(holder->connection, ExitCode::kTryAgain,
           "rank " + std::to_string(hello.rank) + " was taken over by incarnation " +
               std::to_string(hello.incarnation));
    const bool worked = begun_ && holder->in_group;
    disconnected(holder->connection, "a newer process took its place", now);
    if (worked && !elastic())  // its predecessor's work is in the ring that all others stand in
      refuse(id, ExitCode::kTryAgain,
             "rank " + std::to_string(hello.rank) + " is replaced: the job starts again with it");
    return !ended();
  }
  if (!begun_ || elastic()) return true;
  refuse(id, ExitCode::kTryAgain,
         "rank " + std::to_string(hello.rank) + " is replaced: the job starts again with it");
  fail(hello.rank, code(ExitCode::kTryAgain),
       "rank " + std::to_string(hello.rank) + " was replaced by a new process", now);
  return false;
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
    if (member && same_as(*member) * 2 > wanted_) reference = &*member;
  }
  if (reference == nullptr && all_are_here()) reference = &*members_.front();
  if (reference == nullptr) return;
  const int reference_rank = reference->hello.rank;
  for (auto& member : members_) {
    if (!member || identity_of(member->join) == identity_of(reference->join)) continue;
    const int rank = member->hello.rank;
    const std::string reason = difference_text(
        rank, member->join, "rank " + std::to_string(reference_rank), reference->join);
    refuse(member->connection, ExitCode::kMismatch, reason);
    failure_ = contract::LastFailure{rank, code(ExitCode::kMismatch), reason};
    if (observer_ != nullptr) observer_->on_failure(*failure_);
    member.reset();  // the right worker may take its place
  }
}

bool Coordination::all_are_here() const {
  return std::all_of(members_.begin(), members_.begin() + wanted_,
                     [](const auto& member) { return member.has_value(); });
}

// Fewer than all, when nobody else has come for a while: an elastic job has a minimum; and ranks that have
// lost their coordinator hold a state that must not wait for the dead.
bool Coordination::begins_short(double now) const {
  if (begun_ || ended() || stop_requested_) return false;
  std::int64_t here = 0;
  bool held = false;
  for (const auto& member : members_) {
    if (!member) continue;
    ++here;
    held = held || member->join.held.has_value();
  }
  if (!held && !config_.spec.workers.min_replicas) return false;
  const double patience = std::max(failure_detection_s_, held ? 0.0 : kElasticStartSeconds);
  return here >= ranks_at_least() && now - last_join_at_ >= patience;
}

// The newest state that anybody has: in memory, else in a checkpoint.
Coordination::Newest Coordination::newest_state() const {
  Newest newest;
  bool all_hold = true;
  for (const auto& member : members_) {
    if (!member) continue;
    const contract::Join& join = member->join;
    if (join.held && join.held->step > newest.position.step)
      newest = {contract::StateSource::kMemory, member->hello.rank, *join.held};
  }
  for (const auto& member : members_) {
    if (!member) continue;
    const contract::Join& join = member->join;
    all_hold = all_hold && join.held && join.held->step == newest.position.step;
    if (join.checkpoint.step > newest.position.step)
      newest = {contract::StateSource::kCheckpoint, member->hello.rank, join.checkpoint};
  }
  if (newest.source == contract::StateSource::kMemory && all_hold)
    newest.source = contract::StateSource::kInPlace;
  return newest;
}

void Coordination::begin(double now) {
  begun_ = true;
  begun_at_ = now;
  failure_.reset();
  const auto first = std::find_if(members_.begin(), members_.end(), [](const auto& m) { return m.has_value(); });
  reference_ = (*first)->join;
  auto ledger = Ledger::make(ledger_config(config_, *reference_));
  if (!ledger.ok()) return fail(-1, code(ExitCode::kBadConfiguration), ledger.error().message, now);
  const Newest newest = newest_state();
  contract::Membership membership;
  membership.source = newest.source;
  if (newest.source != contract::StateSource::kInitial) {
    const base::Status restored = ledger->restore(newest.position);
    if (!restored.ok()) return fail(newest.rank, code(ExitCode::kBadData), restored.error().message, now);
    membership.restore_rank = newest.rank;
    membership.restore_step = newest.position.step;
  }
  if (newest.source == contract::StateSource::kCheckpoint) checkpoint_step_ = newest.position.step;
  ledger_ = std::move(ledger).value();
  const std::string refusal = sharding_refusal();
  if (!refusal.empty()) return fail(-1, code(ExitCode::kBadConfiguration), refusal, now);
  oracle_.emplace(ledger_->config().train_samples);
  oracle_->begin_at(ledger_->committed().cursor);
  run_facts_ = RunFacts(config_.spec.dataset.shuffle);
  run_facts_.begin_at(ledger_->committed().cursor);
  // A coordinator that takes over does not know what its predecessor has seen of the last step.
  const bool takes_over = newest.source == contract::StateSource::kMemory ||
                          newest.source == contract::StateSource::kInPlace;
  const LedgerPosition& at = ledger_->committed();
  membership.evaluate_first = takes_over && ledger_->evaluates(at.step, at);
  membership.checkpoint_first = takes_over && ledger_->complete() && !config_.spec.checkpoint.path.empty();
  membership.preflight = config_.spec.preflight && !takes_over && !ledger_->complete();
  form(std::move(membership), now);
  tell_sharding();
}

}  // namespace evenkeel::trainer
