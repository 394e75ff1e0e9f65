// A group ends, and the next one begins where it stood: nothing that any survivor has committed is lost, and
// nothing is done twice.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "trainer/coordinator/coordination.h"
#include "trainer/coordinator/coordination_internal.h"

namespace evenkeel::trainer {
namespace {

using contract::ExitCode;
using contract::MessageType;
using contract::StateSource;

// Groups in a row that commit nothing: something is wrong that no further group will mend.
constexpr int kMaxBarrenGroups = 10;
// A rank leaves its group within a step; a first step compiles and reads for the first time.
constexpr double kFirstStepSeconds = 300;
constexpr double kLongestTurnSeconds = 180;  // a pre-flight is one of them

}  // namespace

// A rank that is there and wanted: of the group, or of the next one.
bool Coordination::takes_part(const std::optional<Member>& member) const {
  return member && member->connected && !member->leaving && !member->rests &&
         (member->in_group || member->hello.rank < wanted_);
}

bool Coordination::joiner_waits() const {
  return std::any_of(members_.begin(), members_.end(),
                     [&](const auto& m) { return takes_part(m) && !m->in_group; });
}

// Not wanted any more, or asked to go.
bool Coordination::is_leaver(const Member& member) const {
  return member.leaving || member.hello.rank >= wanted_;
}

bool Coordination::leaver_stays() const {
  return std::any_of(members_.begin(), members_.end(),
                     [&](const auto& m) { return m && (m->in_group || m->rests) && is_leaver(*m); });
}

// The others must be enough, and all of them in the group: whoever waits to be taken in changes what was predicted.
bool Coordination::may_rest(int rank) const {
  const auto& member = members_[static_cast<std::size_t>(rank)];
  const bool settled = !joiner_waits() && !leaver_stays();
  return settled && takes_part(member) && member->in_group && ranks_here() - 1 >= ranks_at_least();
}

std::int64_t Coordination::ranks_here() const {
  return std::count_if(members_.begin(), members_.end(), [&](const auto& m) { return takes_part(m); });
}

// Slow ranks are better than none.
void Coordination::call_all_back() {
  for (auto& member : members_) {
    if (member) member->rests = false;
  }
}

const char* Coordination::reason_for_another_group() const {
  if (joiner_waits()) return "another rank has come";
  if (leaver_stays()) return "a rank leaves";
  if (next_drop_) return "the others are faster without the slowest rank";
  return next_batch_ ? "the batch becomes another" : nullptr;
}

void Coordination::prepare_another_group() {
  dismiss_leavers();
  if (next_batch_) ledger_->set_global_batch(*std::exchange(next_batch_, std::nullopt));
  if (!next_drop_) return;
  members_[static_cast<std::size_t>(next_drop_->rank)]->rests = true;
  dropped_ = std::exchange(next_drop_, std::nullopt);
}

void Coordination::set_wanted(int ranks, double now) {
  if (ranks == wanted_ || ranks < 1 || ended()) return;
  base::log_info("the job is to have another size", {{"ranks", ranks}, {"before", wanted_}});
  wanted_ = ranks;
  members_.resize(std::max(members_.size(), static_cast<std::size_t>(ranks)));
  if (begun_) {
    if (turn_ == Turn::kStepping) issue_plans(now);
  } else if (all_are_here()) {
    begin(now);
  }
}

// At a step boundary: what they did is committed, and nobody waits for them.
void Coordination::dismiss_leavers() {
  for (auto& member : members_) {
    if (!member || !(member->in_group || member->rests) || !is_leaver(*member)) continue;
    member->in_group = member->rests = false;
    if (!member->connected) continue;
    const bool surplus = member->hello.rank >= wanted_;
    const char* words = surplus ? "the job goes on with fewer ranks" : "this rank was asked to stop; the others go on";
    outgoing_.push_back({member->connection, MessageType::kFinish, to_json(contract::Finish{surplus, words})});
  }
}

// A death leaves the global batch alone. Another size of the job changes it where the batch is one per rank
// (training-semantics 2): upwards when the ranks are there, downwards at once.
void Coordination::follow_the_size() {
  const int size = std::clamp(std::max(size_, static_cast<int>(ranks_here())), 1, wanted_);
  if (size == size_) return;
  const bool weak = config_.spec.training.scaling == contract::Scaling::kWeak;
  const std::int64_t batch = ledger_->config().global_batch;
  if (weak) ledger_->set_global_batch(std::max<std::int64_t>(1, batch / size_ * size));
  base::log_info("the size of the job follows", {{"ranks", size},
                                                 {"before", size_},
                                                 {"globalBatch", ledger_->config().global_batch}});
  size_ = size;
}

std::int64_t Coordination::ranks_at_least() const {
  const contract::WorkersSpec& workers = config_.spec.workers;
  return std::int64_t{workers.min_replicas.value_or(1)} * workers.devices_per_replica;
}

void Coordination::regroup(const std::string& reason, double now) {
  if (ended()) return;
  ++fence_.generation;
  turn_ = Turn::kPausing;
  turn_since_ = now;
  group_reason_ = reason;
  broken_at_.reset();
  plans_.clear();
  commits_.clear();
  if (++barren_groups_ > kMaxBarrenGroups) {
    return fail(-1, code(ExitCode::kTryAgain),
                std::to_string(kMaxBarrenGroups) + " groups in a row committed no step; the last one ended because " +
                    reason,
                now);
  }
  base::log_info("the group changes", {{"reason", reason}, {"generation", fence_.generation}});
  for (auto& member : members_) {
    if (!member || !member->in_group) continue;
    member->paused = member->ready = false;
    if (member->connected)
      outgoing_.push_back({member->connection, MessageType::kRegroup, to_json(contract::Regroup{fence_, reason})});
    if (member->rests) member->in_group = false;
  }
  form_if_all_paused(now);
}

void Coordination::on_paused(int rank, const contract::Paused& paused, double now) {
  Member& member = *members_[static_cast<std::size_t>(rank)];
  if (turn_ != Turn::kPausing || !member.in_group || paused.fence != fence_) return;
  member.paused = true;
  member.committed = paused.step;
  member.last = paused.last;
  member.evaluated = std::max(member.evaluated, paused.evaluated);
  member.saving = std::max(member.saving, paused.checkpointed);
  form_if_all_paused(now);
}

void Coordination::on_broken(int rank, const contract::Broken& broken, double now) {
  if (broken.fence != fence_ || turn_ == Turn::kPausing || broken_at_) return;
  broken_at_ = now + kSettleSeconds;
  broken_reason_ = "rank " + std::to_string(rank) + ": " + broken.reason;
}

void Coordination::form_if_all_paused(double now) {
  if (turn_ != Turn::kPausing || ended()) return;
  if (ranks_here() < ranks_at_least()) call_all_back();
  std::int64_t survivors = 0, highest = 0;
  for (const auto& member : members_) {
    if (!takes_part(member) || !member->in_group) continue;
    if (!member->paused) return;
    ++survivors;
    highest = std::max(highest, member->committed);
  }
  if (survivors == 0)
    return fail(-1, code(ExitCode::kTryAgain), "no rank is left that holds the state: " + group_reason_, now);
  if (ranks_here() < ranks_at_least()) return;  // survivors hold
  catch_up(highest, now);
  if (!ended()) form_again(highest, now);
}

// A step that one rank has applied holds the samples of all: it counts, also where some never told of it.
void Coordination::catch_up(std::int64_t step, double now) {
  while (ledger_->committed().step < step) {
    const contract::StepPlan* open = ledger_->oldest_open();
    if (open == nullptr) {
      return fail(-1, code(ExitCode::kInternal),
                  "a rank holds step " + std::to_string(step) + ", which was never planned", now);
    }
    const contract::StepPlan plan = *open;
    const contract::Commit* known = nullptr;
    for (const auto& member : members_) {
      if (!member || !member->in_group || !member->last || member->last->step != plan.step) continue;
      known = &*member->last;
      ledger_->mark_poison(known->skipped_ids);
    }
    if (!count_step(plan, known, now)) return;
  }
}

bool Coordination::owes_evaluation(std::int64_t step) const {
  if (!last_plan_ || last_plan_->step != step || !last_plan_->evaluate_after) return false;
  return !evaluation_ || evaluation_->step < step;
}

bool Coordination::owes_checkpoint(std::int64_t step) const {
  if (!last_plan_ || last_plan_->step != step || !last_plan_->checkpoint_after) return false;
  if (checkpoint_told_step_ >= step) return false;
  return std::none_of(members_.begin(), members_.end(), [&](const auto& m) {
    return m && m->connected && m->in_group && m->saving >= step;
  });
}

void Coordination::form_again(std::int64_t step, double now) {
  contract::Membership membership;
  membership.restore_step = step;
  membership.evaluate_first = owes_evaluation(step);
  membership.checkpoint_first = owes_checkpoint(step);
  bool all_there = true;
  for (auto& member : members_) {
    if (!takes_part(member)) continue;
    const bool holds = member->in_group && member->committed == step;
    all_there = all_there && holds;
    if (holds && membership.restore_rank < 0) membership.restore_rank = member->hello.rank;
    if (!membership.evaluate_first) member->evaluated = std::max(member->evaluated, step);
    // Whoever is still writing tells when it is done.
    if (!membership.checkpoint_first && (!member->in_group || member->saving < step))
      member->checkpointed = std::max(member->checkpointed, step);
  }
  membership.source = all_there ? StateSource::kInPlace : StateSource::kMemory;
  form(std::move(membership), now);
}

// Everybody who is there now, under the present fence.
void Coordination::form(contract::Membership membership, double now) {
  membership.fence = fence_;
  dismiss_leavers();
  for (auto& member : members_) {
    if (!takes_part(member)) continue;
    membership.ranks.push_back(member->hello.rank);
    membership.peers.push_back(member->join.data_address);
  }
  ledger_->regroup(membership.ranks);
  follow_the_size();
  membership.target_steps = ledger_->target_steps();
  // The same one as long as it lives: two never write at a time.
  if (std::find(membership.ranks.begin(), membership.ranks.end(), writer_) == membership.ranks.end())
    writer_ = membership.ranks.front();
  membership.writer = writer_;
  for (const int rank : membership.ranks) {
    Member& member = *members_[static_cast<std::size_t>(rank)];
    membership.rank = rank;
    member.in_group = true;
    member.ready = member.paused = false;
    member.last.reset();
    member.committed = membership.restore_step;
    member.last_heard = member.phase_since = now;
    outgoing_.push_back({member.connection, MessageType::kMembership, to_json(membership)});
  }
  if (!balancer_) balancer_.emplace(balancer_config());
  balancer_->regrouped(ledger_->config().global_batch);
  if (dropped_) balancer_->dropped(*std::exchange(dropped_, std::nullopt), ledger_->committed().step + 1);
  tuner_.regrouped();
  turn_ = Turn::kForming;
  turn_since_ = now;
  steps_in_group_ = 0;
  base::log_info("a group forms", {{"generation", fence_.generation},
                                   {"ranks", membership.ranks.size()},
                                   {"of", wanted_},
                                   {"targetSteps", membership.target_steps},
                                   {"restoreStep", membership.restore_step}});
}

// Why a rank that still answers is of no use any more; empty: it is well, or only waits for others.
std::string Coordination::stands_still(const Member& member, double now) const {
  const double limit = std::max(5 * failure_detection_s_, 5 * longest_phase_s_);
  if (turn_ == Turn::kPausing || turn_ == Turn::kForming) {
    const bool done = turn_ == Turn::kPausing ? member.paused : member.ready;
    if (done || now - turn_since_ <= std::max(limit, kLongestTurnSeconds)) return "";
    return std::string("it answers, but has not ") + (turn_ == Turn::kPausing ? "left its last group" : "become ready");
  }
  const contract::StepPlan* open = ledger_->oldest_open();
  if (open == nullptr || member.committed >= open->step || member.phase == "collective_wait") return "";
  const double patience = steps_in_group_ == 0 ? std::max(limit, kFirstStepSeconds) : limit;
  if (now - std::max(member.phase_since, turn_since_) <= patience) return "";
  return "it answers, but has been in the phase \"" + member.phase + "\" of step " + std::to_string(member.step) +
         " for " + std::to_string(static_cast<int>(now - member.phase_since)) + " s";
}

void Coordination::drop_silent_and_hung(double now) {
  for (auto& member : members_) {
    if (ended()) return;
    if (!member || !member->connected) continue;
    std::string reason;
    if (now - member->last_heard > failure_detection_s_) {
      reason = "nothing heard for " + std::to_string(config_.spec.restart.failure_detection_seconds) + " s";
    } else if (elastic() && begun_ && member->in_group && ledger_) {
      reason = stands_still(*member, now);
    }
    if (reason.empty()) continue;
    refuse(member->connection, ExitCode::kTryAgain, "rank " + std::to_string(member->hello.rank) + ": " + reason);
    disconnected(member->connection, reason, now);
  }
}

}  // namespace evenkeel::trainer
