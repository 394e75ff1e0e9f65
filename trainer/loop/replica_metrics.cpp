#include "trainer/loop/replica_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <map>

#include "contract/metrics.h"

namespace evenkeel::trainer {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;

const contract::MetricInfo& info_of(const std::string& name) {
  return contract::metric_info("evenkeel_replica_" + name);
}

template <class Builder>
auto& family(prometheus::Registry& registry, Builder builder, const contract::MetricInfo& info) {
  return builder.Name(info.name).Help(info.help).Register(registry);
}

}  // namespace

struct ReplicaMetrics::Handles {
  std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  Labels own;

  Gauge& gauge(const std::string& name, Labels more = {}) {
    more.insert(own.begin(), own.end());
    return family(*registry, prometheus::BuildGauge(), info_of(name)).Add(more);
  }
  Counter& counter(const std::string& name, Labels more = {}) {
    more.insert(own.begin(), own.end());
    return family(*registry, prometheus::BuildCounter(), info_of(name)).Add(more);
  }
  // One for each value that the catalogue allows for the label.
  std::map<std::string, Counter*> counters(const std::string& name, const std::string& label) {
    std::map<std::string, Counter*> result;
    for (const contract::LabelInfo& info : info_of(name).labels) {
      if (info.name != label) continue;
      for (const std::string& value : info.values) result[value] = &counter(name, {{label, value}});
    }
    return result;
  }

  explicit Handles(const ReplicaIdentity& id)
      : own{{"trainingjob", id.job}, {"rank", std::to_string(id.rank)}} {
    gauge("info", {{"replica", id.pod},
                   {"world_size", std::to_string(id.world_size)},
                   {"backend", id.backend},
                   {"version", id.version}})
        .Set(1);
    counter("restarts_total").Increment(static_cast<double>(id.restarts));
  }

  Counter& samples = counter("samples_total");
  Counter& steps = counter("steps_total");
  Histogram& step_duration =
      family(*registry, prometheus::BuildHistogram(), info_of("step_duration_seconds"))
          .Add(own, Histogram::BucketBoundaries(info_of("step_duration_seconds").buckets));
  std::map<std::string, Counter*> phases = counters("phase_seconds_total", "phase");
  std::map<std::string, Counter*> input_errors = counters("input_errors_total", "kind");
  std::map<std::string, Counter*> collectives = counters("collectives_total", "op");
  std::map<std::string, Counter*> collective_seconds = counters("collective_seconds_total", "op");
  std::map<std::string, Counter*> collective_bytes = counters("collective_bytes_total", "op");
  // Things that have not happened yet are absent, not zero: these are made by the first step.
  struct Position {
    Gauge &last_step, &step, &epoch, &shard_samples, &shard_consumed, &shards, &batch;
  };
  std::unique_ptr<Position> position;
  std::int64_t epoch = -1;
  double epoch_samples = 0;
  double epoch_ranges = 0;

  Position& at() {
    if (!position) {
      position.reset(new Position{gauge("last_step_timestamp_seconds"), gauge("step"), gauge("epoch"),
                                  gauge("shard_samples"), gauge("shard_samples_consumed"),
                                  gauge("shards_assigned"), gauge("batch_samples")});
    }
    return *position;
  }
};

ReplicaMetrics::ReplicaMetrics(const ReplicaIdentity& identity)
    : handles_(std::make_unique<Handles>(identity)) {}
ReplicaMetrics::~ReplicaMetrics() = default;

std::shared_ptr<prometheus::Collectable> ReplicaMetrics::collectable() const {
  return handles_->registry;
}

void ReplicaMetrics::on_step(const contract::StepPlan& plan, const contract::Commit& commit,
                             double unix_seconds) {
  Handles& h = *handles_;
  if (plan.epoch != h.epoch) {
    h.epoch = plan.epoch;
    h.epoch_samples = h.epoch_ranges = 0;
  }
  h.epoch_samples += static_cast<double>(commit.samples);
  h.epoch_ranges += commit.samples > 0 ? 1 : 0;
  h.samples.Increment(static_cast<double>(commit.samples));
  h.steps.Increment();
  h.input_errors.at("corrupt")->Increment(static_cast<double>(commit.skipped_ids.size()));
  h.step_duration.Observe(commit.step_seconds);
  on_phases(commit.phases);
  Handles::Position& at = h.at();
  at.last_step.Set(unix_seconds);
  at.step.Set(static_cast<double>(plan.step));
  at.epoch.Set(static_cast<double>(plan.epoch));
  at.shard_samples.Set(h.epoch_samples);
  at.shard_consumed.Set(h.epoch_samples);
  at.shards.Set(h.epoch_ranges);
  at.batch.Set(static_cast<double>(commit.samples));
}

void ReplicaMetrics::on_phases(const contract::PhaseSeconds& phases) {
  for (int i = 0; i < static_cast<int>(std::size(contract::kPhaseNames)); ++i) {
    const double seconds = contract::phase(phases, i);
    if (seconds > 0) handles_->phases.at(contract::kPhaseNames[i])->Increment(seconds);
  }
}

void ReplicaMetrics::on_collectives(const Collective& collective) {
  static constexpr std::array<std::pair<contract::CollectiveOp, const char*>, 3> kOps{
      {{contract::CollectiveOp::kAllReduce, "all_reduce"},
       {contract::CollectiveOp::kBroadcast, "broadcast"},
       {contract::CollectiveOp::kBarrier, "barrier"}}};
  for (const auto& [op, name] : kOps) {
    const CollectiveCount count = collective.count(op);
    CollectiveCount& seen = seen_[static_cast<std::size_t>(op)];
    if (count.calls < seen.calls) seen = {};  // a new communicator counts from zero
    handles_->collectives.at(name)->Increment(static_cast<double>(count.calls - seen.calls));
    handles_->collective_seconds.at(name)->Increment(std::max(0.0, count.seconds - seen.seconds));
    handles_->collective_bytes.at(name)->Increment(static_cast<double>(count.sent_bytes - seen.sent_bytes));
    seen = count;
  }
}

}  // namespace evenkeel::trainer
