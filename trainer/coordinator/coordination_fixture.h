// Configurations, hellos, joins and commits for tests of the coordinator. Tests only.
#pragma once

#include <string>

#include "base/hash.h"
#include "contract/messages.h"
#include "contract/trainer_config.h"

namespace evenkeel::trainer {

inline contract::TrainerConfig test_config(int ranks, std::int64_t batch, std::int64_t epochs = 1) {
  contract::TrainerConfig config;
  config.job_name = "demo";
  config.job_uid = "11111111-2222-3333-4444-555555555555";
  config.attempt = 2;
  config.ranks = ranks;
  config.spec.workers.replicas = ranks;
  config.spec.training.epochs = epochs;
  config.spec.training.global_batch = batch;
  config.spec.restart.failure_detection_seconds = 2;
  config.spec.balance_mode = contract::BalanceMode::kObserve;  // times of a story do not follow the shares
  config.spec.restart.scope = contract::RestartScope::kJob;  // what elastic jobs do has tests of its own
  return config;
}

inline contract::Hello test_hello(const contract::TrainerConfig& config, int rank,
                                  std::int64_t incarnation = 1) {
  contract::Hello hello;
  hello.job_uid = config.job_uid;
  hello.attempt = config.attempt;
  hello.rank = rank;
  hello.incarnation = incarnation;
  hello.pod_uid = "pod-" + std::to_string(rank) + "-" + std::to_string(incarnation);
  return hello;
}

inline contract::Join test_join(int rank, std::int64_t train_samples, std::int64_t eval_samples = 10) {
  contract::Join join;
  join.plan_hash = "aaaaaaaaaaaaaaaa";
  join.plan_parts = {{"dense_1", "1111"}, {"dense_2", "2222"}};
  join.byte_order = "little";
  join.data_address = "127.0.0.1:" + std::to_string(5000 + rank);
  join.node = "node";
  join.train_samples = train_samples;
  join.eval_samples = eval_samples;
  return join;
}

inline contract::Commit test_commit(const contract::StepPlan& plan, int rank, double own_seconds = 0.1) {
  contract::Commit commit;
  const auto at = static_cast<std::size_t>(rank);
  commit.fence = plan.fence;
  commit.step = plan.step;
  commit.samples = plan.cuts[at + 1] - plan.cuts[at];
  commit.reduced_count = plan.planned();
  // Positions stand for ids: over an epoch it is the same set.
  for (std::int64_t id = plan.cuts.front(); id < plan.cuts.back(); ++id)
    commit.reduced_ids_hash += base::mix64(static_cast<std::uint64_t>(id));
  commit.loss_sum = 2.0 * static_cast<double>(plan.planned());
  commit.phases.forward = own_seconds;
  commit.step_seconds = own_seconds;
  return commit;
}

}  // namespace evenkeel::trainer
