// Who owns which part of an epoch's order, where ranks own parts of it: whole files (sharding File), or a pass each
// (Off). Only what is not planned yet is in here, so only that can change its owner. The ledger plans with it, and
// every rank follows the plans with one of its own, for its checkpoints. Pure; a value.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "contract/messages.h"

namespace evenkeel::trainer {

class LedgerRanges {
 public:
  struct Span {
    std::int64_t begin = 0, end = 0;
    std::int64_t samples() const { return end - begin; }
  };
  // Seconds for one sample, by rank: what makes two loads comparable. Empty: all are as fast.
  using Costs = std::vector<std::optional<double>>;

  LedgerRanges() = default;
  explicit LedgerRanges(const std::vector<contract::Piece>& pieces);

  // Adds `spans`, whole: the largest first, each to the rank that is then done first. With `cut`, spans are halved
  // until there is one for each rank. Each rank works through its own in the order of positions.
  void deal(std::vector<Span> spans, const std::vector<int>& ranks, const Costs& costs, bool cut);

  // The group is `ranks` now, and `newcomers` are those of it that were not in the last one: what the others leave
  // is dealt, and a newcomer takes its part from the ends of those who have most.
  void regroup(const std::vector<int>& ranks, const std::vector<int>& newcomers, const Costs& costs);

  // Takes a step's shares (by rank) out: each rank from the front of its own; one that has nothing left steals
  // the far half of the longest range. With `tell_all` the pieces of a rank go on with all that it owns after the
  // step. REQUIRES: the shares add up to samples() at most.
  std::vector<contract::Piece> take(const std::vector<std::int64_t>& shares, bool tell_all);

  // What a committed plan leaves, told by its pieces alone. A plan that begins an epoch or a group tells all.
  void follow(const contract::StepPlan& plan);

  std::vector<contract::Piece> pieces() const;  // by rank, each in its order
  std::int64_t samples() const;
  bool empty() const { return samples() == 0; }

 private:
  using Spans = std::deque<Span>;
  std::int64_t load(std::size_t rank) const;
  Spans& of(int rank);
  static void append(Spans& spans, Span span);
  void take_own(std::size_t rank, std::int64_t& wanted, Spans& taken);
  void steal(std::size_t thief);
  void give_part(int rank, const std::vector<int>& ranks, const Costs& costs);
  std::optional<std::pair<std::size_t, std::size_t>> find(std::int64_t position) const;  // rank, index
  void remove(const contract::Piece& piece);

  std::vector<Spans> by_rank_;
};

// Whether a plan tells all that the ranks own, and not only what they take.
bool tells_all(const contract::StepPlan& plan);

}  // namespace evenkeel::trainer
