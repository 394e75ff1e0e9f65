// A trainer with nothing around it: no coordinator, no heartbeats, no ledger, no metrics, no log; the engine's step
// over plans made beforehand. What ./dev bench evenkeel compares the whole trainer with (bar 4).
//   bare_steps DATA BATCH FIRST LAST: one rank, preset mlp; prints seconds a step from step FIRST to step LAST by
//   the wall and by the processor.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "trainer/collectives/tcp/tcp_ring.h"
#include "trainer/coordinator/ledger.h"
#include "trainer/loop/training_step.h"

namespace evenkeel::trainer {
namespace {

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

contract::TrainingJobSpec job(const std::string& folder, std::int64_t batch) {
  contract::TrainingJobSpec spec;
  spec.workers.replicas = 1;
  spec.model.preset = "mlp";
  spec.dataset.format = "idx";
  spec.dataset.path = folder;
  spec.training.global_batch = batch;
  spec.training.epochs = 1000;
  spec.training.optimizer.learning_rate = 0.02;
  spec.training.optimizer.momentum = 0.9;
  spec.training.reproducible = true;  // one thread computes, there as here
  return spec;
}

base::Result<std::vector<contract::StepPlan>> plans_of(const contract::TrainingJobSpec& spec, std::int64_t samples,
                                                       std::int64_t steps) {
  LedgerConfig config;
  config.train_samples = samples;
  config.ranks = 1;
  config.global_batch = spec.global_batch();
  config.epochs = spec.training.epochs;
  EVENKEEL_ASSIGN(Ledger ledger, Ledger::make(config));
  std::vector<contract::StepPlan> plans;
  while (static_cast<std::int64_t>(plans.size()) < steps) {
    const auto plan = ledger.plan_next({1, 1, 1});
    if (!plan) break;
    plans.push_back(*plan);
    EVENKEEL_TRY(ledger.commit(plan->step));
  }
  return plans;
}

base::Status run(const std::string& folder, std::int64_t batch, std::int64_t first, std::int64_t last) {
  const contract::TrainingJobSpec spec = job(folder, batch);
  EVENKEEL_ASSIGN(const std::unique_ptr<Replica> replica, Replica::make(base::real_files(), spec, {}));
  TcpRingOptions options;
  options.member = {{1, 1, 1}, 0, {"127.0.0.1:1"}, "alone"};
  TcpRing ring(options, nullptr);
  EVENKEEL_TRY(ring.connect());
  replica->join(ring);
  GradientReduction reduction(ring, replica->engine().plan().buckets, replica->engine().gradient_arena());
  StepTimer timer(base::real_clock());
  const StepContext context{*replica, 0, ring, reduction, timer, {}};
  EVENKEEL_ASSIGN(const std::vector<contract::StepPlan> plans, plans_of(spec, replica->train().samples, last + 1));
  base::MonotonicTime since{};
  double used = 0;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (i + 1 < plans.size())
      replica->expect_share(plans[i + 1].epoch, plans[i + 1].cuts[0], plans[i + 1].cuts[1]);
    EVENKEEL_TRY(run_step(context, plans[i]));
    if (plans[i].step == first) since = base::real_clock().now(), used = processor_seconds();
    if (plans[i].step != last) continue;
    const auto steps = static_cast<double>(last - first);
    std::printf("%.9f %.9f\n", base::seconds(base::real_clock().now() - since) / steps,
                (processor_seconds() - used) / steps);
  }
  return {};
}

}  // namespace
}  // namespace evenkeel::trainer

int main(int count, char** arguments) {
  if (count != 5) {
    std::fputs("usage: bare_steps DATA BATCH FIRST LAST\n", stderr);
    return 64;
  }
  const evenkeel::base::Status status = evenkeel::trainer::run(arguments[1], std::atoll(arguments[2]),
                                                               std::atoll(arguments[3]), std::atoll(arguments[4]));
  if (status.ok()) return 0;
  std::fprintf(stderr, "bare_steps: %s\n", status.error().message.c_str());
  return 70;
}
