// For tests: small data sets whose learned weights show which samples were used, jobs over them, and runs in
// which every rank is a thread with a real ring. Include from *_test.cpp only.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/files_fake.h"
#include "contract/job/sample_groups.h"
#include "trainer/collectives/tcp/tcp_ring.h"
#include "trainer/coordinator/ledger.h"
#include "trainer/loop/job_state.h"
#include "trainer/loop/training_step.h"

namespace evenkeel::trainer::testing {

inline std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

// n images of 1x1, all zero: only biases learn, and bias k moves by n_k/n - 1/K in one step over all at
// rate 1.
inline void put_bias_set(base::FakeFiles& files, const std::string& folder,
                         const std::vector<std::uint8_t>& labels) {
  const auto n = static_cast<std::uint32_t>(labels.size());
  for (const char* split : {"train", "t10k"}) {
    files.put(folder + "/" + split + "-images-idx3-ubyte",
              big_endian(0x803) + big_endian(n) + big_endian(1) + big_endian(1) + std::string(n, '\0'));
    files.put(folder + "/" + split + "-labels-idx1-ubyte",
              big_endian(0x801) + big_endian(n) + std::string(labels.begin(), labels.end()));
  }
}

// D images of 1xD, image i has byte i = 255: kernel row i moves once for each committed step that holds
// sample i.
inline void put_row_set(base::FakeFiles& files, const std::string& folder, std::uint32_t d, int classes) {
  std::string pixels(static_cast<std::size_t>(d) * d, '\0');
  std::string labels(d, '\0');
  for (std::size_t i = 0; i < d; ++i) {
    pixels[i * d + i] = '\xff';
    labels[i] = static_cast<char>(i % static_cast<std::size_t>(classes));
  }
  for (const char* split : {"train", "t10k"}) {
    files.put(folder + "/" + split + "-images-idx3-ubyte",
              big_endian(0x803) + big_endian(d) + big_endian(1) + big_endian(d) + pixels);
    files.put(folder + "/" + split + "-labels-idx1-ubyte", big_endian(0x801) + big_endian(d) + labels);
  }
}

inline contract::TrainingJobSpec job_over(const std::string& folder, int ranks, std::int64_t global_batch) {
  contract::TrainingJobSpec spec;
  spec.workers.replicas = ranks;
  spec.dataset.format = "idx";
  spec.dataset.path = folder;
  spec.training.epochs = 1;
  spec.training.global_batch = global_batch;
  spec.training.learning_rate_scaling = contract::LearningRateScaling::kNone;
  spec.training.optimizer.learning_rate = 0.1;
  spec.training.optimizer.momentum = 0.9;
  return spec;
}

inline contract::LayerSpec layer(const std::string& type, int units = 0, bool bias = true,
                                 const std::string& activation = "") {
  contract::LayerSpec spec;
  spec.type = type;
  spec.units = units;
  spec.bias = bias;
  spec.activation = activation;
  return spec;
}

// [flatten, dense K], one step over all at rate 1, no momentum.
inline contract::TrainingJobSpec bias_job(const std::string& folder, int ranks, std::int64_t n, int classes) {
  contract::TrainingJobSpec spec = job_over(folder, ranks, n);
  spec.model.layers = {layer("flatten"), layer("dense", classes)};
  spec.training.optimizer.learning_rate = 1;
  spec.training.optimizer.momentum = 0;
  return spec;
}

inline contract::TrainingJobSpec row_job(const std::string& folder, int ranks, std::int64_t global_batch,
                                         int classes) {
  contract::TrainingJobSpec spec = job_over(folder, ranks, global_batch);
  spec.model.layers = {layer("flatten"), layer("dense", classes, false)};
  spec.training.optimizer.learning_rate = 0.001;
  spec.training.optimizer.momentum = 0;
  return spec;
}

// All plans from `from` to the end, or `max_steps` of them.
inline std::vector<contract::StepPlan> plans_of(const contract::TrainingJobSpec& spec,
                                                std::int64_t train_samples, const JobPosition& from = {},
                                                std::size_t max_steps = 1u << 30, const Sharding& sharding = {}) {
  LedgerConfig config;
  config.train_samples = train_samples;
  config.ranks = spec.ranks();
  config.global_batch = spec.global_batch();
  config.granule = contract::share_granule(spec);
  config.epochs = spec.training.epochs;
  config.steps = spec.training.steps;
  if (sharding.policy == contract::ShardingPolicy::kFile) config.dealing = Dealing::kFile;
  if (sharding.policy == contract::ShardingPolicy::kOff) config.dealing = Dealing::kPasses;
  config.passes = spec.ranks();
  config.file_samples = sharding.file_samples;
  config.shuffle = spec.dataset.shuffle;
  config.shuffle_seed = spec.dataset.shuffle_seed;
  auto ledger = Ledger::make(config);
  EXPECT_TRUE(ledger.ok());
  if (from.step > 0) {
    EXPECT_TRUE(ledger->restore(to_message(from, 0)).ok());
    std::vector<int> group;
    for (int rank = 0; rank < spec.ranks(); ++rank) group.push_back(rank);
    ledger->regroup(group);
  }
  std::vector<contract::StepPlan> plans;
  while (plans.size() < max_steps) {
    auto plan = ledger->plan_next({1, 1, 1});
    if (!plan) break;
    plans.push_back(*plan);
    EXPECT_TRUE(ledger->commit(plan->step).ok());
  }
  return plans;
}

struct RankResult {
  base::Status status;
  std::vector<float> weights;  // the arena
  std::string hash;            // weights and optimizer state
  std::vector<contract::Commit> commits;
  std::vector<std::string> hashes;  // after each step
  EvaluationSums evaluation;
  JobPosition position;
  std::uint64_t sent_bytes = 0;
};

struct GroupOptions {
  std::size_t max_steps = 1u << 30;
  ReplicaOptions replica;
  std::string checkpoint_root;  // not empty: resumes from it, and saves after the last step
  std::function<void(Replica&, int rank)> before;  // after make, before the states are made equal
};

class Rank {
 public:
  Rank(base::Files& files, const contract::TrainingJobSpec& spec, TcpRing& ring, const GroupOptions& options)
      : files_(files), spec_(spec), ring_(ring), options_(options) {}

  RankResult run() {
    RankResult result;
    result.status = train(result);
    if (!result.status.ok()) ring_.abort("a rank has failed");
    return result;
  }

 private:
  base::Status train(RankResult& result) {
    EVENKEEL_TRY(ring_.connect());
    EVENKEEL_ASSIGN(const std::unique_ptr<Replica> replica, Replica::make(files_, spec_, options_.replica));
    if (options_.before) options_.before(*replica, ring_.rank());
    EVENKEEL_TRY(restore(*replica, result));
    replica->join(ring_);
    GradientReduction reduction(ring_, replica->engine().plan().buckets, replica->engine().gradient_arena());
    StepTimer timer(base::real_clock());
    const StepContext context{*replica, ring_.rank(), ring_, reduction, timer, {}};
    const std::int64_t samples = replica->train().samples;
    for (const auto& plan :
         plans_of(spec_, samples, result.position, options_.max_steps, replica->sharding())) {
      replica->set_epoch_samples(epoch_samples(result.position, plan, samples));
      const base::Result<contract::Commit> commit = run_step(context, plan);
      keep(*replica, result);
      EVENKEEL_TRY(commit);
      result.commits.push_back(*commit);
      result.hashes.push_back(result.hash);
      advance(result.position, plan, samples);
      result.position.poison = replica->skipped_ids();
    }
    EVENKEEL_ASSIGN(result.evaluation, run_evaluation(context));
    result.sent_bytes = ring_.count(contract::CollectiveOp::kAllReduce).sent_bytes;
    if (!options_.checkpoint_root.empty() && ring_.rank() == 0) {
      EVENKEEL_TRY(save_checkpoint(files_, options_.checkpoint_root,
                                   make_manifest({"uid", 1}, result.position, *replica), replica->weights(),
                                   replica->optimizer_state(), 3));
    }
    return ring_.barrier();
  }

  base::Status restore(Replica& replica, RankResult& result) {
    CheckpointSearch found;
    if (!options_.checkpoint_root.empty()) {
      EVENKEEL_ASSIGN(found, find_checkpoint(files_, options_.checkpoint_root, "uid"));
    }
    contract::Membership membership;
    membership.rank = ring_.rank();
    for (int rank = 0; rank < ring_.size(); ++rank) membership.ranks.push_back(rank);
    membership.source = found.newest ? contract::StateSource::kCheckpoint : contract::StateSource::kInitial;
    membership.restore_rank = found.newest ? ring_.size() - 1 : -1;
    membership.restore_step = found.newest ? found.newest->manifest.step : 0;
    EVENKEEL_ASSIGN(const Restored restored, restore_state(files_, membership, found, {}, replica, ring_));
    result.position = restored.position;
    EVENKEEL_TRY(replica.skip_from_now_on(restored.position.poison));
    keep(replica, result);
    return {};
  }

  static void keep(Replica& replica, RankResult& result) {
    const auto weights = replica.engine().parameter_arena();
    result.weights.assign(weights.begin(), weights.end());
    result.hash = replica.parameter_hash();
  }

  base::Files& files_;
  const contract::TrainingJobSpec& spec_;
  TcpRing& ring_;
  const GroupOptions& options_;
};

// The job on spec.ranks() threads; results by rank.
inline std::vector<RankResult> train_group(base::Files& files, const contract::TrainingJobSpec& spec,
                                           const GroupOptions& options = {}) {
  const int size = spec.ranks();
  std::vector<base::Listener> listeners;
  std::vector<std::string> peers;
  for (int rank = 0; rank < size; ++rank) {
    auto listener = base::Listener::open({"127.0.0.1", 0});
    EXPECT_TRUE(listener.ok());
    peers.push_back("127.0.0.1:" + std::to_string(listener->port()));
    listeners.push_back(std::move(*listener));
  }
  std::vector<RankResult> results(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto i = static_cast<std::size_t>(rank);
      TcpRingOptions ring_options;
      ring_options.member = {{1, 1, 1}, rank, peers, "a key for this test"};
      TcpRing ring(ring_options, &listeners[i]);
      results[i] = Rank(files, spec, ring, options).run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

inline void expect_ok(const std::vector<RankResult>& results) {
  for (const RankResult& result : results) ASSERT_TRUE(result.status.ok()) << result.status.error().message;
}

// The largest |a - b| / max(|a|, |b|). A weight below a tenth of the largest is measured against that tenth:
// where terms cancel to nearly nothing, what is left has the rounding of the terms (1e-7 of the largest,
// measured over 26 steps).
inline double max_relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (const float value : a) largest = std::max(largest, static_cast<double>(std::abs(value)));
  double worst = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double scale =
        std::max({static_cast<double>(std::abs(a[i])), static_cast<double>(std::abs(b[i])), largest / 10});
    if (scale > 0) worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]) / scale);
  }
  return worst;
}

}  // namespace evenkeel::trainer::testing
