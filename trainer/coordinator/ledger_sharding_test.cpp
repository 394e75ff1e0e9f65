// Ranks that own parts of the order: files, or a pass each. Positions stand for ids here; that an order is a
// bijection of them is the readers' (trainer/data/order_test.cpp).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "base/hash.h"
#include "contract/file_layout.h"
#include "trainer/coordinator/ledger.h"
#include "trainer/coordinator/sample_oracle.h"

namespace evenkeel::trainer {
namespace {

using contract::Piece;
using contract::StepPlan;
using Counts = std::vector<std::int64_t>;
constexpr contract::Fence kFence{1, 1, 1};

// `files` of uneven sizes, some of them empty, that hold `samples` together.
Counts uneven_files(std::int64_t samples, std::size_t files) {
  std::mt19937 random(7);
  Counts sizes(files, 0);
  for (std::int64_t left = samples; left > 0;) {
    const std::int64_t some = std::min<std::int64_t>(left, 1 + random() % 97);
    sizes[random() % files] += some;
    left -= some;
  }
  return sizes;
}

LedgerConfig file_config(Counts files, int ranks, std::int64_t batch, std::int64_t epochs) {
  LedgerConfig config;
  config.train_samples = std::accumulate(files.begin(), files.end(), std::int64_t{0});
  config.ranks = ranks;
  config.global_batch = batch;
  config.epochs = epochs;
  config.dealing = Dealing::kFile;
  config.file_samples = std::move(files);
  return config;
}

LedgerConfig pass_config(std::int64_t samples, int ranks, std::int64_t batch, std::int64_t epochs) {
  LedgerConfig config = file_config({samples}, ranks, batch, epochs);
  config.dealing = Dealing::kPasses;
  config.file_samples.clear();
  config.passes = ranks;
  return config;
}

Ledger make(const LedgerConfig& config) {
  auto ledger = Ledger::make(config);
  EXPECT_TRUE(ledger.ok());
  return std::move(ledger).value();
}

// What each rank reads in a step.
std::map<int, Counts> positions_of(const StepPlan& plan) {
  std::map<int, Counts> positions;
  for (const Piece& piece : plan.pieces) {
    const auto rank = static_cast<std::size_t>(piece.rank);
    const auto share = static_cast<std::size_t>(plan.cuts[rank + 1] - plan.cuts[rank]);
    if (share == 0) continue;
    Counts& mine = positions[piece.rank];
    for (auto at = piece.begin; at < piece.end && mine.size() < share; ++at) mine.push_back(at);
  }
  return positions;
}

// A job as its ranks see it: every committed position is counted, hashed for the oracle, and followed as the ranks
// follow it for their checkpoints.
class Job {
 public:
  explicit Job(const LedgerConfig& config) : config_(config), ledger(make(config)), oracle_(config.train_samples) {}

  void plan_ahead() {
    while (ledger.issued_step() < ledger.committed().step + 4) {
      const auto plan = ledger.plan_next(kFence);
      if (!plan) return;
      plans_[plan->step] = *plan;
    }
  }
  // False: nothing is left to do.
  bool step() {
    plan_ahead();
    const StepPlan* open = ledger.oldest_open();
    if (open == nullptr) return false;
    commit(*open);
    return true;
  }
  void to_the_end() {
    while (step()) {
    }
    EXPECT_TRUE(ledger.complete());
  }
  contract::CheckpointPosition position() const {
    contract::CheckpointPosition at;
    at.step = ledger.committed().step;
    at.epoch = ledger.committed().epoch;
    at.cursor = ledger.committed().cursor;
    at.consumed = ledger.consumed();
    at.owned = followed_.pieces();
    return at;
  }
  void expect_every_position_once(std::int64_t epochs) const {
    ASSERT_EQ(seen.size(), static_cast<std::size_t>(epochs));
    for (const auto& [epoch, counts] : seen) {
      EXPECT_EQ(counts, Counts(static_cast<std::size_t>(ledger.epoch_samples(epoch)), 1)) << "epoch " << epoch;
    }
    EXPECT_EQ(oracle_.epochs_proved(), epochs);
  }

  std::map<std::int64_t, Counts> seen;  // by epoch, then position
  std::vector<std::map<int, Counts>> steps;

 private:
  void commit(const StepPlan plan) {
    const auto positions = positions_of(plan);
    std::uint64_t hash = 0;
    Counts& counts = seen[plan.epoch];
    counts.resize(static_cast<std::size_t>(ledger.epoch_samples(plan.epoch)), 0);
    for (std::size_t rank = 0; rank + 1 < plan.cuts.size(); ++rank) {
      const auto mine = positions.find(static_cast<int>(rank));
      const std::size_t share = static_cast<std::size_t>(plan.cuts[rank + 1] - plan.cuts[rank]);
      ASSERT_EQ(mine == positions.end() ? 0 : mine->second.size(), share) << "step " << plan.step;
    }
    for (const auto& [rank, mine] : positions) {
      for (const std::int64_t at : mine) {
        ++counts.at(static_cast<std::size_t>(at));
        hash += base::mix64(static_cast<std::uint64_t>(at % config_.train_samples));
      }
    }
    steps.push_back(positions);
    followed_.follow(plan);
    const std::int64_t passes = ledger.epoch_samples(plan.epoch) / config_.train_samples;
    ASSERT_TRUE(ledger.commit(plan.step).ok());
    EXPECT_EQ(followed_.pieces(), ledger.owned().pieces()) << "after step " << plan.step;
    oracle_.add(plan.planned(), hash);
    if (ledger.committed().epoch == plan.epoch) return;
    EXPECT_TRUE(followed_.empty());
    const auto wrong = oracle_.close(plan.epoch, passes);
    EXPECT_FALSE(wrong) << *wrong;
  }

  LedgerConfig config_;

 public:
  Ledger ledger;

 private:
  SampleOracle oracle_;
  LedgerRanges followed_;
  std::map<std::int64_t, StepPlan> plans_;
};

TEST(LedgerSharding, an_order_by_files_depends_on_seed_epoch_and_sizes_alone) {
  const Counts files{3, 0, 5, 2, 7};
  const auto a = contract::file_layout(files, true, 42, 0), b = contract::file_layout(files, true, 42, 0);
  EXPECT_EQ(a.files, b.files);
  EXPECT_EQ(a.starts.back(), 17);
  std::vector<std::vector<std::size_t>> orders;
  for (std::uint64_t epoch = 0; epoch < 50; ++epoch) orders.push_back(contract::file_layout(files, true, 42, epoch).files);
  std::sort(orders.begin(), orders.end());
  orders.erase(std::unique(orders.begin(), orders.end()), orders.end());
  EXPECT_GT(orders.size(), 20u);
  const auto plain = contract::file_layout(files, false, 42, 3);
  EXPECT_EQ(plain.starts, (Counts{0, 3, 3, 8, 10, 17}));
}

TEST(LedgerSharding, whole_files_make_loads_as_equal_as_they_can_be) {
  LedgerRanges ranges;
  ranges.deal({{0, 10}, {10, 19}, {19, 28}, {28, 33}, {33, 37}}, {0, 1, 2}, {}, true);
  EXPECT_EQ(ranges.pieces(), (std::vector<Piece>{{0, 0, 10}, {1, 10, 19}, {1, 28, 33}, {2, 19, 28}, {2, 33, 37}}));
  // Twice as fast: twice as much.
  LedgerRanges weighted;
  std::vector<LedgerRanges::Span> files;
  for (std::int64_t i = 0; i < 30; ++i) files.push_back({i * 10, i * 10 + 10});
  weighted.deal(files, {0, 1}, {0.01, 0.02}, true);
  std::int64_t first = 0;
  for (const Piece& piece : weighted.pieces()) first += piece.rank == 0 ? piece.samples() : 0;
  EXPECT_EQ(first, 200);
}

TEST(LedgerSharding, a_rank_reads_its_files_in_order_until_they_are_done) {
  Job run(file_config({40, 40, 40, 40}, 2, 8, 1));
  run.plan_ahead();
  const StepPlan* first = run.ledger.oldest_open();
  std::int64_t told = 0;
  for (const Piece& piece : first->pieces) told += piece.samples();
  EXPECT_EQ(told, 160) << "the first plan of an epoch tells who owns what";
  run.to_the_end();
  for (const auto& step : run.steps) {
    for (const auto& [rank, mine] : step) {
      for (std::size_t i = 1; i < mine.size(); ++i) EXPECT_EQ(mine[i], mine[i - 1] + 1);
    }
  }
  run.expect_every_position_once(1);
  EXPECT_EQ(run.ledger.consumed(), (Counts{80, 80}));
}

TEST(LedgerSharding, an_idle_rank_takes_the_far_half_of_the_longest_range_and_all_work_to_the_end) {
  Job run(file_config({100, 4, 4, 4}, 4, 8, 1));
  run.to_the_end();
  run.expect_every_position_once(1);
  for (const auto& step : run.steps) {
    for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(step.at(rank).size(), 2u);
  }
  EXPECT_EQ(run.ledger.consumed(), (Counts{28, 28, 28, 28}));
}

TEST(LedgerSharding, fewer_files_or_samples_than_ranks_still_give_every_sample_once) {
  for (const std::int64_t samples : {1, 2, 3, 5, 8, 16, 31, 100, 257}) {
    for (const std::size_t files : {1, 2, 5}) {
      for (const int ranks : {1, 2, 3, 8}) {
        for (const std::int64_t batch : {1, 3, 8, 300}) {
          Job run(file_config(uneven_files(samples, files), ranks, batch, 2));
          run.to_the_end();
          run.expect_every_position_once(2);
        }
      }
    }
  }
}

// The story that everything else stands on: kills, joins, shares that follow the speed.
void tell_a_long_story(const LedgerConfig& config, std::int64_t epochs, std::uint32_t seed) {
  Job run(config);
  std::mt19937 random(seed);
  std::vector<int> group(static_cast<std::size_t>(config.ranks));
  std::iota(group.begin(), group.end(), 0);
  int next = config.ranks;
  int kills = 0, joins = 0;
  const auto pause = [&] { return static_cast<int>(random() % (static_cast<unsigned>(run.ledger.target_steps()) / 9 + 1)); };
  for (int event = 0; event < 7; ++event) {
    for (int i = pause(); i > 0 && run.step(); --i) {
    }
    run.plan_ahead();  // plans that will be void
    Division division;
    for (int rank = 0; rank < next + 1; ++rank) division.seconds_per_sample.emplace_back(0.001 * (1 + random() % 3));
    run.ledger.set_division(division);
    if (event == 2 || event == 5) {
      group.push_back(next++);
      ++joins;
    } else if (group.size() > 1) {
      group.erase(group.begin() + static_cast<std::ptrdiff_t>(random() % group.size()));
      ++kills;
    }
    run.ledger.regroup(group);
  }
  EXPECT_EQ(kills, 5);
  EXPECT_EQ(joins, 2);
  run.to_the_end();
  run.expect_every_position_once(epochs);
}

TEST(LedgerSharding, five_kills_two_joins_and_uneven_shares_lose_and_repeat_nothing) {
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    tell_a_long_story(file_config(uneven_files(10007, 37), 8, 16, 2), 2, seed);
    tell_a_long_story(file_config(uneven_files(10007, 3), 8, 16, 1), 1, seed);
    tell_a_long_story(file_config(uneven_files(509, 11), 8, 16, 3), 3, seed);
    tell_a_long_story(pass_config(509, 6, 16, 2), 2, seed);
  }
}

TEST(LedgerSharding, whole_groups_of_statistics_stay_whole) {
  LedgerConfig config = file_config(uneven_files(1000, 9), 3, 24, 1);
  config.granule = 4;
  Job run(config);
  run.to_the_end();
  run.expect_every_position_once(1);
  for (std::size_t i = 0; i + 1 < run.steps.size(); ++i) {
    for (const auto& [rank, mine] : run.steps[i]) EXPECT_EQ(mine.size() % 4, 0u);
  }
}

TEST(LedgerSharding, a_restart_from_any_step_goes_on_with_the_same_samples) {
  for (const LedgerConfig& config : {file_config(uneven_files(211, 7), 3, 16, 2), pass_config(53, 3, 8, 2)}) {
    Job whole(config);
    whole.to_the_end();
    for (std::size_t cut = 0; cut <= whole.steps.size(); ++cut) {
      Job first(config);
      for (std::size_t i = 0; i < cut; ++i) first.step();
      Job second(config);
      ASSERT_TRUE(second.ledger.restore(first.position()).ok());
      second.ledger.regroup({0, 1, 2});
      EXPECT_EQ(second.ledger.target_steps(), whole.ledger.target_steps());
      for (std::size_t at = cut; at < whole.steps.size(); ++at) {
        second.plan_ahead();
        const StepPlan* open = second.ledger.oldest_open();
        ASSERT_NE(open, nullptr);
        ASSERT_EQ(positions_of(*open), whole.steps[at]) << "step " << at << " after a restart at " << cut;
        ASSERT_TRUE(second.ledger.commit(open->step).ok());
      }
      EXPECT_EQ(second.ledger.consumed(), whole.ledger.consumed());
    }
  }
}

TEST(LedgerSharding, a_restart_with_another_number_of_ranks_takes_exactly_what_is_left) {
  for (const int ranks : {1, 2, 5, 9}) {
    Job first(file_config(uneven_files(1009, 13), 4, 16, 1));
    for (int i = 0; i < 30; ++i) first.step();
    Job second(file_config(uneven_files(1009, 13), ranks, 16, 1));
    ASSERT_TRUE(second.ledger.restore(first.position()).ok());
    std::vector<int> group(static_cast<std::size_t>(ranks));
    std::iota(group.begin(), group.end(), 0);
    second.ledger.regroup(group);
    Counts left = first.seen[0];
    std::vector<std::int64_t> by_rank(static_cast<std::size_t>(ranks), 0);
    while (second.ledger.plan_next(kFence)) {
      const StepPlan plan = *second.ledger.oldest_open();
      for (const auto& [rank, mine] : positions_of(plan)) {
        by_rank[static_cast<std::size_t>(rank)] += static_cast<std::int64_t>(mine.size());
        for (const std::int64_t at : mine) ++left[static_cast<std::size_t>(at)];
      }
      ASSERT_TRUE(second.ledger.commit(plan.step).ok());
    }
    EXPECT_EQ(left, Counts(1009, 1)) << ranks;
    const auto [least, most] = std::minmax_element(by_rank.begin(), by_rank.end());
    EXPECT_LE(*most - *least, 34) << "a newcomer works as much as the others";
  }
}

TEST(LedgerSharding, a_newcomer_gets_whole_files_where_they_fit) {
  LedgerRanges ranges({{0, 0, 10}, {0, 20, 40}, {0, 60, 90}, {1, 100, 160}});
  ranges.regroup({0, 1, 2}, {2}, {});
  EXPECT_EQ(ranges.samples(), 120);
  const std::vector<Piece> expected{{0, 0, 10}, {0, 20, 40}, {0, 60, 70}, {1, 100, 140}, {2, 70, 90}, {2, 140, 160}};
  std::vector<Piece> got = ranges.pieces();
  std::sort(got.begin(), got.end(), [](const Piece& a, const Piece& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.begin < b.begin;
  });
  EXPECT_EQ(got, expected);
}

TEST(LedgerSharding, what_cannot_be_of_this_job_is_refused) {
  Job first(file_config({20, 20}, 2, 8, 1));
  first.step();
  const contract::CheckpointPosition good = first.position();
  Ledger record = make([] {
    LedgerConfig config = file_config({20, 20}, 2, 8, 1);
    config.dealing = Dealing::kRecord;
    return config;
  }());
  EXPECT_NE(record.restore(good).error().message.find("dataset.sharding"), std::string::npos);

  Ledger ledger = make(file_config({20, 20}, 2, 8, 1));
  contract::CheckpointPosition bad = good;
  bad.owned.clear();
  EXPECT_FALSE(ledger.restore(bad).ok());
  bad = good;
  bad.owned[0].end += 1;
  EXPECT_FALSE(ledger.restore(bad).ok());
  bad = good;
  bad.owned.back() = bad.owned.front();
  EXPECT_FALSE(ledger.restore(bad).ok());
  bad = good;
  bad.owned.back().end += 4;
  bad.owned.front().begin += 4;
  EXPECT_FALSE(ledger.restore(bad).ok()) << "beyond the end";
  EXPECT_TRUE(ledger.restore(good).ok());

  LedgerConfig other = file_config({20, 20}, 2, 8, 1);
  other.file_samples = {20, 19};
  EXPECT_FALSE(Ledger::make(other).ok());
}

TEST(LedgerSharding, where_every_rank_sees_everything_an_epoch_is_a_pass_for_each) {
  Job run(pass_config(100, 4, 4, 1));
  run.to_the_end();
  EXPECT_EQ(run.steps.size(), 100u);
  EXPECT_EQ(run.ledger.consumed(), (Counts{100, 100, 100, 100}));
  run.expect_every_position_once(1);  // of 400
  std::map<int, Counts> by_rank;
  for (const auto& step : run.steps) {
    for (const auto& [rank, mine] : step) by_rank[rank].insert(by_rank[rank].end(), mine.begin(), mine.end());
  }
  for (int rank = 0; rank < 4; ++rank) {
    Counts expected(100);
    std::iota(expected.begin(), expected.end(), rank * 100);
    EXPECT_EQ(by_rank[rank], expected);
  }
}

TEST(LedgerSharding, an_epoch_of_passes_keeps_its_length_when_the_job_is_resumed_with_other_ranks) {
  Job first(pass_config(20, 4, 8, 2));
  for (int i = 0; i < 3; ++i) first.step();
  Ledger second = make(pass_config(20, 2, 8, 2));
  ASSERT_TRUE(second.restore(first.position()).ok());
  second.regroup({0, 1});
  EXPECT_EQ(second.target_steps(), 3 + 7 + 5);  // 56 of 80 are left, then 2 passes of 20
  while (second.plan_next(kFence)) ASSERT_TRUE(second.commit(second.oldest_open()->step).ok());
  EXPECT_EQ(second.samples(), 80 + 40);
}

TEST(LedgerSharding, poison_is_kept_and_comes_back) {
  Ledger ledger = make(file_config({20, 20}, 2, 8, 1));
  ledger.mark_poison({3, 39, 3});
  ledger.mark_poison({40, -1});  // of no record
  EXPECT_EQ(ledger.poison(), (std::set<std::int64_t>{3, 39}));
  Job first(file_config({20, 20}, 2, 8, 1));
  first.step();
  contract::CheckpointPosition position = first.position();
  position.poison = {5};
  ASSERT_TRUE(ledger.restore(position).ok());
  EXPECT_EQ(ledger.poison(), (std::set<std::int64_t>{5}));
}

}  // namespace
}  // namespace evenkeel::trainer
