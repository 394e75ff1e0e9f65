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
  return std::tie(join.plan_hash, join.byte_order, join.train_samples, join.eval_samples);
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

}  // namespace evenkeel::trainer
