#include "operator/runtime/job_metrics.h"

#include <prometheus/metric_family.h>

#include <cctype>
#include <map>
#include <optional>

#include "base/time_text.h"
#include "contract/metrics.h"

namespace evenkeel::oper {
namespace {

using LabelList = std::vector<prometheus::ClientMetric::Label>;

// Collects samples under names of the catalogue; a name outside it is on no page.
class Page {
 public:
  Page() {
    for (const contract::MetricInfo& info : contract::metric_catalogue())
      if (info.source == contract::MetricSource::kOperatorState) infos_[info.name] = &info;
  }

  void add(const std::string& short_name, LabelList labels, double value) {
    const std::string name = "evenkeel_job_" + short_name;
    const auto info = infos_.find(name);
    if (info == infos_.end()) return;
    prometheus::MetricFamily& family = families_[name];
    family.name = name;
    family.help = info->second->help;
    prometheus::ClientMetric metric;
    metric.label = std::move(labels);
    if (info->second->type == contract::MetricType::kCounter) {
      family.type = prometheus::MetricType::Counter;
      metric.counter.value = value;
    } else {
      family.type = prometheus::MetricType::Gauge;
      metric.gauge.value = value;
    }
    family.metric.push_back(std::move(metric));
  }

  // The closed values of a label, in the catalogue's order.
  std::vector<std::string> values(const std::string& short_name, const std::string& label) const {
    const auto info = infos_.find("evenkeel_job_" + short_name);
    if (info != infos_.end())
      for (const contract::LabelInfo& one : info->second->labels)
        if (one.name == label) return one.values;
    return {};
  }

  std::vector<prometheus::MetricFamily> take() {
    std::vector<prometheus::MetricFamily> all;
    for (auto& [name, family] : families_) all.push_back(std::move(family));
    return all;
  }

 private:
  std::map<std::string, const contract::MetricInfo*> infos_;
  std::map<std::string, prometheus::MetricFamily> families_;
};

std::string camel(const std::string& snake) {
  std::string out;
  for (std::size_t i = 0; i < snake.size(); ++i) {
    if (snake[i] == '_' && i + 1 < snake.size())
      out += static_cast<char>(std::toupper(static_cast<unsigned char>(snake[++i])));
    else
      out += snake[i];
  }
  return out;
}

std::optional<double> number(const Json& object, const std::string& key) {
  if (!object.is_object()) return std::nullopt;
  const auto value = object.find(key);
  if (value == object.end() || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

// One job's samples; every line carries its namespace and name.
class JobSamples {
 public:
  JobSamples(Page& page, const Json& job) : page_(page), job_(job), status_(base::child(job, "status")) {
    const Json& metadata = base::child(job, "metadata");
    labels_ = {{"namespace", base::string_at(metadata, "namespace")},
               {"trainingjob", base::string_at(metadata, "name")}};
  }

  void all() {
    state();
    times();
    progress();
    balance();
    ledger_of_time();
  }

 private:
  void add(const std::string& name, double value) { page_.add(name, labels_, value); }
  void add(const std::string& name, const std::string& label, const std::string& label_value, double value) {
    LabelList labels = labels_;
    labels.push_back({label, label_value});
    page_.add(name, std::move(labels), value);
  }
  void add_number(const std::string& name, const Json& object, const std::string& key) {
    if (const auto value = number(object, key)) add(name, *value);
  }
  void add_time(const std::string& name, const std::string& text) {
    const auto time = base::parse_rfc3339(text);
    if (!text.empty() && time.ok())
      add(name, std::chrono::duration<double>(time->time_since_epoch()).count());
  }

  void state() {
    const std::string phase = base::string_at(status_, "phase", "Pending");
    for (const std::string& one : page_.values("status_phase", "phase"))
      add("status_phase", "phase", one, one == phase ? 1 : 0);
    const Json& workers = base::child(status_, "workers");
    add_number("spec_replicas", base::at_path(job_, {"spec", "workers"}), "replicas");
    for (const std::string& one : page_.values("status_replicas", "state"))
      add("status_replicas", "state", one, number(workers, one).value_or(0));
    const Json& restarts = base::child(status_, "restarts");
    add("status_restarts", number(restarts, "total").value_or(0));
    add("status_restarts_counted", number(restarts, "countedTowardsMax").value_or(0));
  }

  void times() {
    add_time("created_timestamp_seconds",
             base::string_at(base::child(job_, "metadata"), "creationTimestamp"));
    add_time("start_timestamp_seconds", base::string_at(status_, "startTime"));
    add_time("completion_timestamp_seconds", base::string_at(status_, "completionTime"));
  }

  void progress() {
    const Json& progress = base::child(status_, "progress");
    add_number("step", progress, "step");
    add_number("target_steps", progress, "targetSteps");
    add_number("samples_per_second", progress, "samplesPerSecond");
    const auto step = number(progress, "step"), target = number(progress, "targetSteps");
    if (step && target && *target > 0) add("progress_ratio", *step / *target);
  }

  void balance() {
    if (const auto ratio = number(base::child(status_, "balance"), "imbalanceRatio"); ratio && *ratio > -1) {
      add("imbalance_ratio", "dimension", "busy_time", *ratio);
      add("idle_ratio", "dimension", "busy_time", *ratio / (1 + *ratio));  // max/mean - 1 and 1 - mean/max
    }
    add_number("rebalances", base::child(status_, "balance"), "rebalances");
    remedies(base::at_path(status_, {"diagnosis", "remedies"}));
    const double threshold =
        number(base::at_path(job_, {"spec", "balance"}), "stragglerThreshold").value_or(0.75);
    int measured = 0, stragglers = 0;
    for (const Json& replica : base::child(status_, "replicas")) {
      const auto relative = number(replica, "relativePerformance");
      if (!relative) continue;
      ++measured;
      stragglers += *relative < threshold ? 1 : 0;
      add("replica_relative_performance_ratio", "rank", std::to_string(base::int_at(replica, "rank")),
          *relative);
    }
    if (measured > 0) add("stragglers", stragglers);
    const std::string verdict = base::string_at(base::child(status_, "diagnosis"), "verdict");
    if (!verdict.empty())
      for (const std::string& one : page_.values("diagnosis", "verdict"))
        add("diagnosis", "verdict", one, one == verdict ? 1 : 0);
    shares(base::at_path(status_, {"diagnosis", "losses"}));
  }

  void add_gain(const char* action, const char* kind, const std::optional<double>& gain) {
    if (!gain) return;
    LabelList labels = labels_;
    labels.push_back({"action", action});
    labels.push_back({"kind", kind});
    page_.add("remedy_gain_ratio", std::move(labels), *gain);
  }

  // What was done, by what it is called; of several of one kind the one that gained most, which comes first.
  void remedies(const Json& list) {
    static constexpr std::pair<const char*, const char*> kActions[] = {{"batch ", "batch"},
                                                                       {"shares by speed", "shares"},
                                                                       {"go on without rank ", "drop_rank"},
                                                                       {"data threads ", "data_threads"},
                                                                       {"cache in memory", "cache"}};
    if (!list.is_array()) return;
    for (const auto& [words, action] : kActions) {
      for (const Json& remedy : list) {
        const std::string state = base::string_at(remedy, "state");
        const bool done = state == "Applied" || state == "Reverted";
        if (!done || !base::string_at(remedy, "action").starts_with(words)) continue;
        add_gain(action, "predicted", number(remedy, "predictedGain"));
        add_gain(action, "measured", number(remedy, "measuredGain"));
        break;
      }
    }
  }

  // The losses are in the status; compute is what is left of the step.
  void shares(const Json& losses) {
    double rest = 1;
    bool any = false;
    for (const std::string& part : page_.values("step_time_share_ratio", "part")) {
      const auto share = number(losses, camel(part));
      if (part == "compute" || !share) continue;
      add("step_time_share_ratio", "part", part, *share);
      rest -= *share;
      any = true;
    }
    if (any) add("step_time_share_ratio", "part", "compute", number(losses, "compute").value_or(rest));
  }

  void ledger_of_time() {
    const Json& time = base::child(status_, "time");
    add("productive_seconds_total", number(time, "productiveSeconds").value_or(0));
    const Json& causes = base::child(time, "unproductiveSeconds");
    for (const std::string& cause : page_.values("unproductive_seconds_total", "cause"))
      add("unproductive_seconds_total", "cause", cause, number(causes, camel(cause)).value_or(0));
  }

  Page& page_;
  const Json& job_;
  const Json& status_;
  LabelList labels_;
};

}  // namespace

std::vector<prometheus::MetricFamily> job_metric_families(const std::vector<Json>& jobs) {
  Page page;
  for (const Json& job : jobs) JobSamples(page, job).all();
  return page.take();
}

std::vector<prometheus::MetricFamily> JobMetrics::Collect() const {
  return job_metric_families(jobs_.all());
}

}  // namespace evenkeel::oper
