#include "trainer/loop/job_plan.h"

#include <cstdio>

#include "trainer/coordinator/shares.h"
#include "trainer/data/idx_reader.h"
#include "trainer/graph/plan.h"
#include "trainer/graph/plan_hash.h"
#include "trainer/loop/replica.h"
#include "trainer/model/model.h"
#include "trainer/optim/optimizer.h"

namespace evenkeel::trainer {
namespace {

// Speed of the network that the prediction assumes; said in the output.
constexpr double kAssumedBytesPerSecond = 1.25e9;

std::string shares_text(std::int64_t samples, int ranks, std::int64_t step) {
  std::string text;
  for (const std::int64_t share : balanced_shares(samples, ranks, step))
    text += (text.empty() ? "" : ", ") + std::to_string(share);
  return "[" + text + "]";
}

std::string line(const char* name, const std::string& value) {
  char text[256];
  std::snprintf(text, sizeof text, "%-24s ", name);
  return text + value + "\n";
}

std::string schedule_text(const contract::TrainingJobSpec& spec, const DatasetPair& data) {
  const std::int64_t samples = data.train.samples;
  const std::int64_t batch = spec.global_batch();
  const std::int64_t steps = (samples + batch - 1) / batch;
  const std::int64_t last = samples - (steps - 1) * batch;
  const int ranks = spec.ranks();
  std::string text = line("ranks", std::to_string(ranks));
  text += line("training samples", std::to_string(samples));
  text += line("evaluation samples", std::to_string(data.eval ? data.eval->samples : 0));
  text += line("classes", std::to_string(data.train.num_classes));
  text += line("global batch", std::to_string(batch) + ", shares of step 0 " +
                                   shares_text(std::min(batch, samples), ranks, 0));
  text += line("steps per epoch", std::to_string(steps) + ", the last of " + std::to_string(last) +
                                      " samples, shares " + shares_text(last, ranks, steps - 1));
  const std::int64_t total = spec.training.epochs ? *spec.training.epochs * steps : *spec.training.steps;
  text += line("steps in all", std::to_string(total));
  return text;
}

std::string traffic_text(const Plan& plan, int ranks) {
  std::uint64_t elements = 0;
  for (const Bucket& bucket : plan.buckets) elements += bucket.elements;
  const double bytes = 2.0 * (ranks - 1) / ranks * static_cast<double>(elements) * sizeof(float);
  char text[256];
  std::snprintf(text, sizeof text,
                "%.0f bytes sent by each rank in a step, in %zu buckets; %.2f ms at an assumed 10 Gbit/s",
                bytes, plan.buckets.size(), bytes / kAssumedBytesPerSecond * 1e3);
  return line("all-reduce", text);
}

}  // namespace

base::Result<std::string> describe_job(base::Files& files, const contract::TrainingJobSpec& spec) {
  EVENKEEL_ASSIGN(const DatasetPair data, load_dataset(files, spec.dataset, output_classes(spec.model)));
  EVENKEEL_ASSIGN(const Graph graph,
                  build_model(spec.model, data.train.sample_shape, data.train.num_classes));
  EVENKEEL_ASSIGN(const std::unique_ptr<Optimizer> optimizer,
                  make_optimizer(spec.training.optimizer, nullptr));
  EVENKEEL_ASSIGN(const Plan plan,
                  compile_plan(graph, largest_share(spec, data.train.samples), PlanMode::kTraining,
                               {spec.strategy.bucket_mib, optimizer->slots()}));
  return schedule_text(spec, data) + traffic_text(plan, spec.ranks()) +
         line("plan hash", plan_hash(layer_hashes(plan))) + "\n" + to_text(plan);
}

}  // namespace evenkeel::trainer
