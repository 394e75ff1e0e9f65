// Every metric of the product, as data: name, type, help, labels and their closed value sets. /metrics pages,
// dashboards, alerts and the metrics page of the documentation name nothing else (tested). Pure.
#pragma once

#include <string>
#include <vector>

namespace evenkeel::contract {

enum class MetricType { kCounter, kGauge, kHistogram };
// Who puts it on a page.
enum class MetricSource { kReplica, kCoordinator, kOperatorState, kOperator };

struct LabelInfo {
  std::string name;
  std::vector<std::string> values;  // closed set; empty: open (trainingjob, rank, namespace, ...)
};

struct MetricInfo {
  std::string name;  // as on the page
  MetricType type = MetricType::kGauge;
  std::string help;
  std::vector<LabelInfo> labels;
  std::vector<double> buckets;  // histograms
  MetricSource source = MetricSource::kReplica;
};

// All that this version exports.
const std::vector<MetricInfo>& metric_catalogue();
// REQUIRES: the name is in the catalogue.
const MetricInfo& metric_info(const std::string& name);

// The catalogue as a page for people, in Markdown: docs/metrics.md.
std::string metrics_markdown();

}  // namespace evenkeel::contract
