#include "contract/metrics.h"

#include <gtest/gtest.h>

#include <set>

namespace evenkeel::contract {
namespace {

TEST(MetricCatalogue, names_are_unique_except_where_sources_share_one) {
  std::set<std::pair<std::string, int>> seen;
  for (const MetricInfo& info : metric_catalogue()) {
    EXPECT_TRUE(seen.insert({info.name, static_cast<int>(info.source)}).second) << info.name;
  }
}

TEST(MetricCatalogue, counters_end_in_total_and_nothing_else_does) {
  for (const MetricInfo& info : metric_catalogue()) {
    const bool total = info.name.size() > 6 && info.name.substr(info.name.size() - 6) == "_total";
    EXPECT_EQ(total, info.type == MetricType::kCounter) << info.name;
  }
}

TEST(MetricCatalogue, no_label_belongs_to_the_scraper) {
  const std::set<std::string> taken = {"job", "instance", "pod", "container", "endpoint", "service"};
  for (const MetricInfo& info : metric_catalogue()) {
    for (const LabelInfo& label : info.labels) {
      EXPECT_FALSE(taken.contains(label.name)) << info.name << " has " << label.name;
      const bool trainer = info.source == MetricSource::kReplica || info.source == MetricSource::kCoordinator;
      EXPECT_FALSE(trainer && label.name == "namespace") << info.name;
    }
  }
}

TEST(MetricCatalogue, every_metric_has_help_and_histograms_have_buckets) {
  for (const MetricInfo& info : metric_catalogue()) {
    EXPECT_FALSE(info.help.empty()) << info.name;
    EXPECT_EQ(info.buckets.empty(), info.type != MetricType::kHistogram) << info.name;
  }
  EXPECT_EQ(metric_info("evenkeel_replica_step_duration_seconds").buckets.size(), 17u);
  EXPECT_EQ(metric_info("controller_runtime_reconcile_time_seconds").buckets.size(), 40u);
}

}  // namespace
}  // namespace evenkeel::contract
