#include "trainer/coordinator/ledger_ranges.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace evenkeel::trainer {
namespace {

using contract::Piece;
using Span = LedgerRanges::Span;

double cost_of(const LedgerRanges::Costs& costs, std::size_t rank) {
  const std::optional<double> cost = rank < costs.size() ? costs[rank] : std::nullopt;
  return cost && *cost > 0 ? *cost : 1;
}

// The longest first; of equal ones the first in the order.
bool longer(const Span& a, const Span& b) {
  return a.samples() != b.samples() ? a.samples() > b.samples() : a.begin < b.begin;
}

void halve_until(std::vector<Span>& spans, std::size_t count) {
  while (!spans.empty() && spans.size() < count) {
    const auto longest = std::min_element(spans.begin(), spans.end(), longer);
    if (longest->samples() < 2) return;
    const Span far{longest->begin + (longest->samples() + 1) / 2, longest->end};
    longest->end = far.begin;
    spans.push_back(far);
  }
}

}  // namespace

bool tells_all(const contract::StepPlan& plan) {
  std::int64_t told = 0;
  for (const Piece& piece : plan.pieces) told += piece.samples();
  return !plan.cuts.empty() && !plan.pieces.empty() && (plan.cuts.front() == 0 || told > plan.planned());
}

LedgerRanges::LedgerRanges(const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) append(of(piece.rank), {piece.begin, piece.end});
}

LedgerRanges::Spans& LedgerRanges::of(int rank) {
  const auto at = static_cast<std::size_t>(rank);
  if (by_rank_.size() <= at) by_rank_.resize(at + 1);
  return by_rank_[at];
}

void LedgerRanges::append(Spans& spans, Span span) {
  if (span.samples() <= 0) return;
  if (!spans.empty() && spans.back().end == span.begin) {
    spans.back().end = span.end;
  } else {
    spans.push_back(span);
  }
}

std::int64_t LedgerRanges::load(std::size_t rank) const {
  if (rank >= by_rank_.size()) return 0;
  return std::accumulate(by_rank_[rank].begin(), by_rank_[rank].end(), std::int64_t{0},
                         [](std::int64_t sum, const Span& span) { return sum + span.samples(); });
}

std::int64_t LedgerRanges::samples() const {
  std::int64_t sum = 0;
  for (std::size_t rank = 0; rank < by_rank_.size(); ++rank) sum += load(rank);
  return sum;
}

std::vector<Piece> LedgerRanges::pieces() const {
  std::vector<Piece> pieces;
  for (std::size_t rank = 0; rank < by_rank_.size(); ++rank) {
    for (const Span& span : by_rank_[rank]) pieces.push_back({static_cast<int>(rank), span.begin, span.end});
  }
  return pieces;
}

void LedgerRanges::deal(std::vector<Span> spans, const std::vector<int>& ranks, const Costs& costs, bool cut) {
  std::erase_if(spans, [](const Span& span) { return span.samples() <= 0; });
  if (cut) halve_until(spans, ranks.size());
  std::sort(spans.begin(), spans.end(), longer);
  std::vector<std::vector<Span>> dealt(ranks.size());
  std::vector<std::int64_t> loads;
  for (const int rank : ranks) loads.push_back(load(static_cast<std::size_t>(rank)));
  for (const Span& span : spans) {
    std::size_t best = 0;
    double earliest = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const double done = static_cast<double>(loads[i] + span.samples()) *
                          cost_of(costs, static_cast<std::size_t>(ranks[i]));
      if (i > 0 && done >= earliest) continue;
      best = i;
      earliest = done;
    }
    loads[best] += span.samples();
    dealt[best].push_back(span);
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    std::sort(dealt[i].begin(), dealt[i].end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
    for (const Span& span : dealt[i]) append(of(ranks[i]), span);
  }
}

void LedgerRanges::regroup(const std::vector<int>& ranks, const std::vector<int>& newcomers,
                           const Costs& costs) {
  std::vector<Span> left;
  for (std::size_t rank = 0; rank < by_rank_.size(); ++rank) {
    if (std::find(ranks.begin(), ranks.end(), static_cast<int>(rank)) != ranks.end()) continue;
    left.insert(left.end(), by_rank_[rank].begin(), by_rank_[rank].end());
    by_rank_[rank].clear();
  }
  if (!ranks.empty()) deal(std::move(left), ranks, costs, false);
  for (const int rank : newcomers) {
    if (load(static_cast<std::size_t>(rank)) == 0) give_part(rank, ranks, costs);
  }
}

// Whole ranges from the end of whoever would be done last, as long as they fit; then the far part of one.
void LedgerRanges::give_part(int rank, const std::vector<int>& ranks, const Costs& costs) {
  double speed = 0;
  for (const int other : ranks) speed += 1 / cost_of(costs, static_cast<std::size_t>(other));
  const auto part_of = [&](int other) {
    const double share = 1 / cost_of(costs, static_cast<std::size_t>(other)) / speed;
    return static_cast<std::int64_t>(std::floor(static_cast<double>(samples()) * share));
  };
  (void)of(rank);
  std::int64_t wanted = part_of(rank);
  while (wanted > 0) {
    int donor = -1;
    std::int64_t most = 0;
    for (const int other : ranks) {
      const std::int64_t spare = load(static_cast<std::size_t>(other)) - part_of(other);
      if (other != rank && spare > most) donor = other, most = spare;
    }
    if (donor < 0) break;
    Span& last = of(donor).back();
    const std::int64_t moved = std::min({last.samples(), wanted, most});
    const Span part{last.end - moved, last.end};
    last.end = part.begin;
    if (last.samples() == 0) of(donor).pop_back();
    append(of(rank), part);
    wanted -= moved;
  }
}

void LedgerRanges::take_own(std::size_t rank, std::int64_t& wanted, Spans& taken) {
  Spans& own = by_rank_[rank];
  while (wanted > 0 && !own.empty()) {
    const std::int64_t count = std::min(wanted, own.front().samples());
    append(taken, {own.front().begin, own.front().begin + count});
    own.front().begin += count;
    wanted -= count;
    if (own.front().samples() == 0) own.pop_front();
  }
}

void LedgerRanges::steal(std::size_t thief) {
  Spans* victim = nullptr;
  std::size_t at = 0;
  for (Spans& spans : by_rank_) {
    for (std::size_t i = 0; i < spans.size(); ++i) {
      if (victim != nullptr && !longer(spans[i], (*victim)[at])) continue;
      victim = &spans;
      at = i;
    }
  }
  assert(victim != nullptr);
  Span& span = (*victim)[at];
  const Span far{span.begin + span.samples() / 2, span.end};
  span.end = far.begin;
  if (span.samples() == 0) victim->erase(victim->begin() + static_cast<std::ptrdiff_t>(at));
  append(by_rank_[thief], far);
}

std::vector<Piece> LedgerRanges::take(const std::vector<std::int64_t>& shares, bool tell_all) {
  if (by_rank_.size() < shares.size()) by_rank_.resize(shares.size());
  std::vector<Spans> taken(by_rank_.size());
  std::vector<std::int64_t> wanted(shares);
  for (std::size_t rank = 0; rank < shares.size(); ++rank) take_own(rank, wanted[rank], taken[rank]);
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    while (wanted[rank] > 0 && !empty()) {
      steal(rank);
      take_own(rank, wanted[rank], taken[rank]);
    }
    assert(wanted[rank] == 0);
  }
  std::vector<Piece> pieces;
  for (std::size_t rank = 0; rank < taken.size(); ++rank) {
    Spans told = taken[rank];
    for (std::size_t i = 0; tell_all && i < by_rank_[rank].size(); ++i) append(told, by_rank_[rank][i]);
    for (const Span& span : told) pieces.push_back({static_cast<int>(rank), span.begin, span.end});
  }
  return pieces;
}

void LedgerRanges::follow(const contract::StepPlan& plan) {
  if (!tells_all(plan)) {
    for (const Piece& piece : plan.pieces) remove(piece);
    return;
  }
  *this = LedgerRanges(plan.pieces);
  by_rank_.resize(std::max(by_rank_.size(), plan.cuts.size() - 1));
  Spans done;
  for (std::size_t rank = 0; rank + 1 < plan.cuts.size(); ++rank) {
    std::int64_t share = plan.cuts[rank + 1] - plan.cuts[rank];
    take_own(rank, share, done);
  }
}

std::optional<std::pair<std::size_t, std::size_t>> LedgerRanges::find(std::int64_t position) const {
  for (std::size_t rank = 0; rank < by_rank_.size(); ++rank) {
    for (std::size_t i = 0; i < by_rank_[rank].size(); ++i) {
      const Span& span = by_rank_[rank][i];
      if (span.begin <= position && position < span.end) return std::pair{rank, i};
    }
  }
  return std::nullopt;
}

// A piece that lies in another rank's range was stolen with all that follows it there.
void LedgerRanges::remove(const Piece& piece) {
  (void)of(piece.rank);
  for (std::int64_t at = piece.begin; at < piece.end;) {
    const auto place = find(at);
    if (!place) return;  // the plan that told of it was not seen
    Spans& spans = by_rank_[place->first];
    const auto here = spans.begin() + static_cast<std::ptrdiff_t>(place->second);
    const Span whole = *here;
    const Span rest{std::min(piece.end, whole.end), whole.end};
    here->end = at;
    const bool own = place->first == static_cast<std::size_t>(piece.rank);
    if (own && rest.samples() > 0) spans.insert(here + 1, rest);
    if (whole.begin == at) spans.erase(spans.begin() + static_cast<std::ptrdiff_t>(place->second));
    if (!own) append(by_rank_[static_cast<std::size_t>(piece.rank)], rest);
    at = rest.begin;
  }
}

}  // namespace evenkeel::trainer
