#include "base/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>

namespace evenkeel::base {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using testing::HasSubstr;

MetricFamily gauge(const std::string& name, double value, std::vector<ClientMetric::Label> labels = {}) {
  ClientMetric metric;
  metric.label = std::move(labels);
  metric.gauge.value = value;
  return {name, "Help.", MetricType::Gauge, {metric}};
}

std::string value_text(double value) {
  const std::string page = serialize_metrics({gauge("g", value)});
  const std::size_t at = page.rfind("\ng ") + 3;
  return page.substr(at, page.size() - at - 1);
}

std::shared_ptr<prometheus::Registry> sample_registry() {
  auto registry = std::make_shared<prometheus::Registry>();
  auto& histogram = prometheus::BuildHistogram()
                        .Name("b_seconds")
                        .Help("Time.")
                        .Register(*registry)
                        .Add({{"op", "x"}}, prometheus::Histogram::BucketBoundaries{0.5, 2});
  histogram.Observe(0.25);
  histogram.Observe(1);
  histogram.Observe(10);
  prometheus::BuildCounter()
      .Name("a_total")
      .Help("Line\nand \\ slash, \"quote\".")
      .Register(*registry)
      .Add({{"path", "C:\\\"x\"\n"}})
      .Increment(3);
  return registry;
}

TEST(Metrics, families_are_sorted_escaped_and_histograms_cumulative) {
  MetricsPage page;
  page.add(sample_registry());
  EXPECT_EQ(page.text(),
            "# HELP a_total Line\\nand \\\\ slash, \"quote\".\n"
            "# TYPE a_total counter\n"
            "a_total{path=\"C:\\\\\\\"x\\\"\\n\"} 3\n"
            "# HELP b_seconds Time.\n"
            "# TYPE b_seconds histogram\n"
            "b_seconds_bucket{op=\"x\",le=\"0.5\"} 1\n"
            "b_seconds_bucket{op=\"x\",le=\"2\"} 2\n"
            "b_seconds_bucket{op=\"x\",le=\"+Inf\"} 3\n"
            "b_seconds_sum{op=\"x\"} 11.25\n"
            "b_seconds_count{op=\"x\"} 3\n");
}

TEST(Metrics, families_of_one_name_are_merged) {
  const std::string page =
      serialize_metrics({gauge("g", 1, {{"r", "0"}}), gauge("f", 5), gauge("g", 2, {{"r", "1"}})});
  EXPECT_EQ(page,
            "# HELP f Help.\n# TYPE f gauge\nf 5\n"
            "# HELP g Help.\n# TYPE g gauge\ng{r=\"0\"} 1\ng{r=\"1\"} 2\n");
}

TEST(Metrics, a_family_without_series_is_not_on_the_page) {
  EXPECT_EQ(serialize_metrics({MetricFamily{"empty", "Help.", MetricType::Gauge, {}}}), "");
}

TEST(Metrics, numbers_are_whole_where_exact_and_shortest_otherwise) {
  EXPECT_EQ(value_text(0), "0");
  EXPECT_EQ(value_text(-3), "-3");
  EXPECT_EQ(value_text(1e15), "1000000000000000");
  EXPECT_EQ(value_text(9007199254740992.0), "9007199254740992");
  EXPECT_EQ(value_text(0.1), "0.1");
  EXPECT_EQ(value_text(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(std::strtod(value_text(1e300).c_str(), nullptr), 1e300);
  EXPECT_EQ(value_text(std::nan("")), "NaN");
  EXPECT_EQ(value_text(std::numeric_limits<double>::infinity()), "+Inf");
  EXPECT_EQ(value_text(-std::numeric_limits<double>::infinity()), "-Inf");
}

TEST(Metrics, a_histogram_without_its_last_bucket_gets_one) {
  ClientMetric metric;
  metric.histogram = {2, 3.5, {{1, 1.0}}};
  EXPECT_THAT(serialize_metrics({{"h", "Help.", MetricType::Histogram, {metric}}}),
              HasSubstr("h_bucket{le=\"+Inf\"} 2\n"));
}

TEST(Metrics, the_process_tells_of_itself) {
  MetricsPage page;
  page.add(process_metrics());
  const std::string text = page.text();
  for (const char* name : {"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds",
                           "process_start_time_seconds", "process_max_fds", "process_virtual_memory_bytes"}) {
    EXPECT_THAT(text, HasSubstr("\n" + std::string(name) + " "));
  }
  const std::size_t at = text.find("\nprocess_start_time_seconds ");
  EXPECT_NEAR(std::strtod(text.c_str() + at + 28, nullptr), static_cast<double>(time(nullptr)), 3600);
}

TEST(Metrics, promtool_accepts_the_page) {
  if (std::system("command -v promtool >/dev/null 2>&1") != 0) GTEST_SKIP() << "promtool is not installed";
  MetricsPage page;
  page.add(sample_registry());
  page.add(process_metrics());
  const std::string path = testing::TempDir() + "evenkeel_page.txt";
  std::ofstream(path) << page.text();
  // Status 3 are remarks of style; 1 is a page that does not parse.
  const int status = std::system(("promtool check metrics < " + path + " > " + path + ".out 2>&1").c_str());
  EXPECT_TRUE(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3) << std::ifstream(path + ".out").rdbuf();
  std::remove(path.c_str());
  std::remove((path + ".out").c_str());
}

}  // namespace
}  // namespace evenkeel::base
