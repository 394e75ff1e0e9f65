// State of the jobs as metrics, built from the cache at scrape time: nothing goes stale, nothing outlives its
// object. A Collectable for base's MetricsPage. Thread safe.
#pragma once

#include <prometheus/collectable.h>

#include <vector>

#include "operator/kube/object_store.h"

namespace evenkeel::oper {

class JobMetrics : public prometheus::Collectable {
 public:
  explicit JobMetrics(const ObjectStore& jobs) : jobs_(jobs) {}
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const ObjectStore& jobs_;
};

// The same over a list of objects.
std::vector<prometheus::MetricFamily> job_metric_families(const std::vector<Json>& jobs);

}  // namespace evenkeel::oper
