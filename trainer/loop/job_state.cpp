#include "trainer/loop/job_state.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "trainer/coordinator/ledger_ranges.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

// Integers travel as doubles: exact up to 2^53, far beyond any count of samples.
Status broadcast_numbers(Collective& collective, std::vector<std::int64_t>& numbers, int root) {
  if (numbers.empty()) return {};  // on all ranks alike
  std::vector<double> values(numbers.begin(), numbers.end());
  EVENKEEL_TRY(collective.broadcast(std::span<double>(values), root));
  std::transform(values.begin(), values.end(), numbers.begin(),
                 [](double v) { return static_cast<std::int64_t>(v); });
  return {};
}

Status broadcast_pieces(Collective& collective, std::vector<contract::Piece>& pieces, std::size_t count, int root) {
  std::vector<std::int64_t> numbers;
  for (const contract::Piece& piece : pieces) numbers.insert(numbers.end(), {piece.rank, piece.begin, piece.end});
  numbers.resize(3 * count);
  EVENKEEL_TRY(broadcast_numbers(collective, numbers, root));
  pieces.clear();
  for (std::size_t i = 0; i < numbers.size(); i += 3)
    pieces.push_back({static_cast<int>(numbers[i]), numbers[i + 1], numbers[i + 2]});
  return {};
}

Status broadcast_position(Collective& collective, JobPosition& position, OptimizerRestored& optimizer,
                          Replica& replica, int root) {
  std::vector<std::int64_t> head{position.step,
                                 position.epoch,
                                 position.cursor,
                                 static_cast<std::int64_t>(position.consumed.size()),
                                 optimizer == OptimizerRestored::kYes ? 1 : 0,
                                 replica.optimizer_steps(),
                                 static_cast<std::int64_t>(position.owned.size()),
                                 static_cast<std::int64_t>(position.poison.size())};
  EVENKEEL_TRY(broadcast_numbers(collective, head, root));
  position.step = head[0];
  position.epoch = head[1];
  position.cursor = head[2];
  position.consumed.resize(static_cast<std::size_t>(head[3]));
  optimizer = head[4] == 1 ? OptimizerRestored::kYes : OptimizerRestored::kStartsAnew;
  replica.set_optimizer_steps(head[5]);
  double rate_batch = replica.rate_batch();
  EVENKEEL_TRY(collective.broadcast(std::span<double>(&rate_batch, 1), root));
  replica.set_rate_batch(rate_batch);
  EVENKEEL_TRY(broadcast_numbers(collective, position.consumed, root));
  EVENKEEL_TRY(broadcast_pieces(collective, position.owned, static_cast<std::size_t>(head[6]), root));
  position.poison.resize(static_cast<std::size_t>(head[7]));
  return broadcast_numbers(collective, position.poison, root);
}

Result<Restored> load(base::Files& files, const contract::Membership& membership, const CheckpointSearch& own,
                      Replica& replica) {
  if (!own.newest || own.newest->manifest.step != membership.restore_step) {
    return Error{ErrorCode::kIo, "the job resumes from step " + std::to_string(membership.restore_step) +
                                     ", but that checkpoint is not on rank " +
                                     std::to_string(membership.rank)};
  }
  Restored restored;
  Result<OptimizerRestored> loaded =
      load_checkpoint(files, *own.newest, replica.weights(), replica.optimizer_state());
  if (!loaded.ok() && loaded.error().code != ErrorCode::kMismatch) {
    // It verified a moment ago: the storage is at fault, and the next attempt may find it well or skip it.
    return Error{ErrorCode::kIo, "restoring " + own.newest->directory + ": " + loaded.error().message};
  }
  EVENKEEL_ASSIGN(restored.optimizer, std::move(loaded));
  const contract::CheckpointManifest& manifest = own.newest->manifest;
  // Without state the optimizer begins anew, and so does the count that its bias correction goes by.
  replica.set_optimizer_steps(restored.optimizer == OptimizerRestored::kYes ? manifest.optimizer_steps : 0);
  replica.set_rate_batch(manifest.rate_batch);
  restored.position = {manifest.step,     manifest.epoch, manifest.cursor,
                       manifest.consumed, manifest.owned, manifest.poison};
  return restored;
}

}  // namespace

std::int64_t JobPosition::samples() const {
  return std::accumulate(consumed.begin(), consumed.end(), std::int64_t{0});
}

std::int64_t epoch_samples(const JobPosition& position, const contract::StepPlan& plan,
                           std::int64_t train_samples) {
  if (plan.pieces.empty()) return train_samples;
  const std::vector<contract::Piece>& left = tells_all(plan) ? plan.pieces : position.owned;
  return std::accumulate(left.begin(), left.end(), plan.cuts.front(),
                         [](std::int64_t sum, const contract::Piece& piece) { return sum + piece.samples(); });
}

void advance(JobPosition& position, const contract::StepPlan& plan, std::int64_t train_samples) {
  const std::size_t ranks = plan.cuts.size() - 1;
  position.consumed.resize(std::max(position.consumed.size(), ranks));
  for (std::size_t rank = 0; rank < ranks; ++rank)
    position.consumed[rank] += plan.cuts[rank + 1] - plan.cuts[rank];
  const bool epoch_ends = plan.cuts.back() == epoch_samples(position, plan, train_samples);
  if (!plan.pieces.empty()) {
    LedgerRanges left(position.owned);
    left.follow(plan);
    position.owned = epoch_ends ? std::vector<contract::Piece>() : left.pieces();
  }
  position.step = plan.step;
  position.epoch = plan.epoch + (epoch_ends ? 1 : 0);
  position.cursor = epoch_ends ? 0 : plan.cuts.back();
}

contract::CheckpointPosition to_message(const CheckpointSearch& search) {
  contract::CheckpointPosition message;
  message.skipped = search.skipped;
  if (!search.newest) return message;
  const contract::CheckpointManifest& manifest = search.newest->manifest;
  message.step = manifest.step;
  message.epoch = manifest.epoch;
  message.cursor = manifest.cursor;
  message.consumed = manifest.consumed;
  message.owned = manifest.owned;
  message.poison = manifest.poison;
  message.rate_batch = manifest.rate_batch;
  message.manifest_hash = search.newest->manifest_hash;
  return message;
}

contract::CheckpointPosition to_message(const JobPosition& position, double rate_batch) {
  return {position.step, position.epoch, position.cursor, "", position.consumed, {}, position.owned,
          position.poison, rate_batch};
}

Result<Restored> restore_state(base::Files& files, const contract::Membership& membership,
                               const CheckpointSearch& own, const JobPosition& held, Replica& replica,
                               Collective& collective) {
  using contract::StateSource;
  Restored restored{held, OptimizerRestored::kYes};
  const bool initial = membership.source == StateSource::kInitial;
  const int root = initial ? 0 : membership.position_of(membership.restore_rank);
  const bool is_root = membership.position() == root;
  if (membership.source == StateSource::kCheckpoint && is_root) {
    EVENKEEL_ASSIGN(restored, load(files, membership, own, replica));
  }
  if (membership.source != StateSource::kInPlace) {
    EVENKEEL_TRY(broadcast_position(collective, restored.position, restored.optimizer, replica, root));
    EVENKEEL_TRY(collective.broadcast(replica.engine().parameter_arena(), root));
    EVENKEEL_TRY(collective.broadcast(replica.engine().optimizer_state(), root));
  }
  if (restored.position.step != membership.restore_step) {
    return Error{ErrorCode::kMismatch,
                 "the job goes on from step " + std::to_string(membership.restore_step) +
                     ", the state of rank " + std::to_string(membership.rank) + " is of step " +
                     std::to_string(restored.position.step)};
  }
  return restored;
}

contract::CheckpointManifest make_manifest(const CheckpointIdentity& identity, const JobPosition& position,
                                           const Replica& replica) {
  contract::CheckpointManifest manifest;
  manifest.job_uid = identity.job_uid;
  manifest.attempt = identity.attempt;
  manifest.step = position.step;
  manifest.epoch = position.epoch;
  manifest.cursor = position.cursor;
  manifest.samples = position.samples();
  manifest.consumed = position.consumed;
  manifest.owned = position.owned;
  manifest.poison = position.poison;
  manifest.rate_batch = replica.rate_batch();
  manifest.optimizer_steps = replica.optimizer_steps();
  manifest.seed = replica.spec().training.seed;
  manifest.shuffle_seed = replica.spec().dataset.shuffle_seed;
  manifest.ranks = replica.spec().ranks();
  manifest.plan_hash = replica.plan_hash();
  for (const LayerHash& layer : replica.layer_hashes())
    manifest.plan_parts.emplace_back(layer.layer, layer.hash);
  return manifest;
}

}  // namespace evenkeel::trainer
