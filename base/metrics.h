// Metrics text: our own serializer over prometheus-cpp's registry (its text writes "Nan" and leaves newlines
// in HELP unescaped). Registry and families are thread safe; see prometheus-cpp for handles.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace evenkeel::base {

inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

// Exposition format 0.0.4: families sorted by name, one HELP and TYPE each, escapes, NaN/+Inf/-Inf.
std::string serialize_metrics(const std::vector<prometheus::MetricFamily>& families);

// All collectables on one page; families of one name from several collectables are merged.
class MetricsPage {
 public:
  void add(std::shared_ptr<prometheus::Collectable> collectable);
  std::string text() const;

 private:
  std::vector<std::shared_ptr<prometheus::Collectable>> collectables_;
};

// process_cpu_seconds_total, process_resident_memory_bytes, process_open_fds, process_start_time_seconds, ...
std::shared_ptr<prometheus::Collectable> process_metrics();

}  // namespace evenkeel::base
