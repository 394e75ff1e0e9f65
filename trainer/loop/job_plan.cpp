#include "trainer/loop/job_plan.h"

#include <cstdio>

#include "contract/job/sample_groups.h"
#include "trainer/coordinator/shares.h"
#include "trainer/data/open_dataset.h"
#include "trainer/graph/plan.h"
#include "trainer/graph/plan_hash.h"
#include "trainer/loop/model_setup.h"
#include "trainer/model/model.h"

namespace evenkeel::trainer {
namespace {

// Speed of the network that the prediction assumes; said in the output.
constexpr double kAssumedBytesPerSecond = 1.25e9;

std::string shares_text(const contract::TrainingJobSpec& spec, std::int64_t samples, std::int64_t step) {
  std::string text;
  for (const std::int64_t share : balanced_shares(samples, spec.ranks(), step, contract::share_granule(spec)))
    text += (text.empty() ? "" : ", ") + std::to_string(share);
  return "[" + text + "]";
}

std::string line(const char* name, const std::string& value) {
  char text[256];
  std::snprintf(text, sizeof text, "%-24s ", name);
  return text + value + "\n";
}

std::string schedule_text(const contract::TrainingJobSpec& spec, const SplitPair& data) {
  const std::int64_t samples = data.train->info().samples;
  const std::int64_t batch = spec.global_batch();
  const std::int64_t steps = (samples + batch - 1) / batch;
  const std::int64_t last = samples - (steps - 1) * batch;
  std::string text = line("ranks", std::to_string(spec.ranks()));
  text += line("training samples", std::to_string(samples));
  text += line("evaluation samples", std::to_string(data.eval ? data.eval->info().samples : 0));
  text += line("classes", std::to_string(data.train->info().num_classes));
  text += line("global batch", std::to_string(batch) + ", shares of step 0 " +
                                   shares_text(spec, std::min(batch, samples), 0));
  text += line("steps per epoch", std::to_string(steps) + ", the last of " + std::to_string(last) +
                                      " samples, shares " + shares_text(spec, last, steps - 1));
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

std::string passes_text(const ModelSetup& setup, std::int64_t batch) {
  std::string text;
  PlanOptions options = setup.plan;
  options.on_pass = [&text](const char* pass, const Graph& graph) {
    text += std::string("graph after ") + pass + "\n" + to_text(graph) + "\n";
  };
  (void)compile_plan(setup.graph, batch, PlanMode::kTraining, options);
  return text;
}

}  // namespace

base::Result<std::string> describe_job(base::Files& files, const contract::TrainingJobSpec& spec,
                                       const DescribeOptions& options) {
  EVENKEEL_ASSIGN(const SplitPair data, open_dataset(files, spec.dataset, output_classes(spec.model)));
  EVENKEEL_ASSIGN(const ModelSetup setup, set_up_model(spec, data.train->info()));
  const std::int64_t share = largest_share(spec, data.train->info().samples);
  const MemoryBudget budget{options.memory_limit_bytes, options.memory_limit_source, data.resident_bytes()};
  EVENKEEL_ASSIGN(const std::int64_t micro,
                  choose_micro_batch(setup, share, contract::share_granule(spec), budget));
  EVENKEEL_ASSIGN(const Plan plan, compile_plan(setup.graph, micro, PlanMode::kTraining, setup.plan));
  return schedule_text(spec, data) + traffic_text(plan, spec.ranks()) +
         line("largest share", std::to_string(share) + ", in micro-batches of " + std::to_string(micro)) +
         line("plan hash", plan_hash(layer_hashes(plan))) + "\n" +
         (options.passes ? passes_text(setup, micro) : "") + to_text(plan);
}

}  // namespace evenkeel::trainer
