#include "operator/runtime/operator_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include "contract/metrics.h"

#ifndef EVENKEEL_COMMIT
#define EVENKEEL_COMMIT "unknown"
#endif

namespace evenkeel::oper {
namespace {

using contract::MetricInfo;
using contract::MetricType;
using Labels = std::map<std::string, std::string>;

const Labels kController{{"controller", "trainingjob"}};
const Labels kQueue{{"controller", "trainingjob"}, {"name", "trainingjob"}};

// All combinations of closed labels; none if any label is open.
std::vector<Labels> combinations(const MetricInfo& info) {
  std::vector<Labels> all{{}};
  for (const contract::LabelInfo& label : info.labels) {
    std::vector<Labels> next;
    for (const Labels& labels : all) {
      for (const std::string& value : label.values) {
        next.push_back(labels);
        next.back()[label.name] = value;
      }
    }
    all = std::move(next);
  }
  return all;
}

}  // namespace

struct OperatorMetrics::Families {
  prometheus::Registry registry;
  std::map<std::string, prometheus::Family<prometheus::Counter>*> counters;
  std::map<std::string, prometheus::Family<prometheus::Gauge>*> gauges;
  std::map<std::string, std::pair<prometheus::Family<prometheus::Histogram>*, std::vector<double>>>
      histograms;

  Families() {
    for (const MetricInfo& info : contract::metric_catalogue())
      if (info.source == contract::MetricSource::kOperator) add(info);
  }

  void add(const MetricInfo& info) {
    switch (info.type) {
      case MetricType::kCounter: {
        auto& family = prometheus::BuildCounter().Name(info.name).Help(info.help).Register(registry);
        for (const Labels& labels : combinations(info)) family.Add(labels);
        counters[info.name] = &family;
        break;
      }
      case MetricType::kGauge:
        gauges[info.name] = &prometheus::BuildGauge().Name(info.name).Help(info.help).Register(registry);
        break;
      case MetricType::kHistogram: {
        auto& family = prometheus::BuildHistogram().Name(info.name).Help(info.help).Register(registry);
        for (const Labels& labels : combinations(info)) family.Add(labels, info.buckets);
        histograms[info.name] = {&family, info.buckets};
        break;
      }
    }
  }
};

OperatorMetrics::OperatorMetrics(base::Clock& clock, std::string host, int workers)
    : clock_(clock), host_(std::move(host)), families_(std::make_unique<Families>()) {
  set("evenkeel_operator_build_info",
      {{"version", EVENKEEL_VERSION}, {"commit", EVENKEEL_COMMIT}, {"compiler", "g++ " __VERSION__}}, 1);
  set("controller_runtime_max_concurrent_reconciles", kController, workers);
  set("controller_runtime_active_workers", kController, 0);
}

OperatorMetrics::~OperatorMetrics() = default;

// A name outside the catalogue is on no page: the catalogue decides what this version exports.
void OperatorMetrics::set(const std::string& name, const Labels& labels, double value) {
  const auto family = families_->gauges.find(name);
  if (family != families_->gauges.end()) family->second->Add(labels).Set(value);
}

void OperatorMetrics::count(const std::string& name, const Labels& labels, double by) {
  const auto family = families_->counters.find(name);
  if (family != families_->counters.end()) family->second->Add(labels).Increment(by);
}

void OperatorMetrics::observe(const std::string& name, const Labels& labels, double value) {
  const auto family = families_->histograms.find(name);
  if (family != families_->histograms.end())
    family->second.first->Add(labels, family->second.second).Observe(value);
}

void OperatorMetrics::reconcile_started() {
  families_->gauges.at("controller_runtime_active_workers")->Add(kController).Increment();
}

void OperatorMetrics::reconcile_finished(const std::string& result, double seconds) {
  families_->gauges.at("controller_runtime_active_workers")->Add(kController).Decrement();
  count("controller_runtime_reconcile_total", {{"controller", "trainingjob"}, {"result", result}});
  if (result == "error") count("controller_runtime_reconcile_errors_total", kController);
  observe("controller_runtime_reconcile_time_seconds", kController, seconds);
}

void OperatorMetrics::reconcile_panicked() {
  count("controller_runtime_reconcile_panics_total", kController);
}

void OperatorMetrics::namespace_seen(const std::string& name_space) {
  for (const char* result : {"succeeded", "failed", "deleted"})
    count("evenkeel_operator_jobs_finished_total", {{"namespace", name_space}, {"result", result}}, 0);
}

void OperatorMetrics::job_finished(const std::string& name_space, const std::string& result) {
  count("evenkeel_operator_jobs_finished_total", {{"namespace", name_space}, {"result", result}});
}

void OperatorMetrics::pod_operation(const std::string& operation, const std::string& result) {
  count("evenkeel_operator_pod_operations_total", {{"operation", operation}, {"result", result}});
}

void OperatorMetrics::request_done(const Sample& sample) {
  count("rest_client_requests_total", {{"code", sample.code}, {"method", sample.method}, {"host", host_}});
  const Labels verb{{"verb", sample.verb}, {"host", host_}};
  observe("rest_client_request_duration_seconds", verb, sample.seconds);
  observe("rest_client_rate_limiter_duration_seconds", verb, sample.limiter_seconds);
  observe("rest_client_request_size_bytes", verb, static_cast<double>(sample.request_bytes));
  observe("rest_client_response_size_bytes", verb, static_cast<double>(sample.response_bytes));
}

void OperatorMetrics::request_retried(const std::string& verb, const std::string& code) {
  count("rest_client_request_retries_total", {{"code", code}, {"verb", verb}, {"host", host_}});
}

void OperatorMetrics::watch_event(const std::string& resource, const std::string& type) {
  count("evenkeel_operator_watch_events_total", {{"resource", resource}, {"type", type}});
}

void OperatorMetrics::watch_restarted(const std::string& resource, const std::string& reason) {
  count("evenkeel_operator_watch_restarts_total", {{"resource", resource}, {"reason", reason}});
}

void OperatorMetrics::watch_alive(const std::string& resource) {
  set("evenkeel_operator_watch_last_event_timestamp_seconds", {{"resource", resource}},
      base::seconds(clock_.wall_now().time_since_epoch()));
}

void OperatorMetrics::queue_added() {
  count("workqueue_adds_total", kQueue);
}
void OperatorMetrics::queue_retried() {
  count("workqueue_retries_total", kQueue);
}
void OperatorMetrics::queue_started(double waited_seconds) {
  observe("workqueue_queue_duration_seconds", kQueue, waited_seconds);
}
void OperatorMetrics::queue_finished(double worked_seconds) {
  observe("workqueue_work_duration_seconds", kQueue, worked_seconds);
}

std::vector<prometheus::MetricFamily> OperatorMetrics::Collect() const {
  if (reader_) reader_(const_cast<OperatorMetrics&>(*this));
  return families_->registry.Collect();
}

}  // namespace evenkeel::oper
