#include "base/metrics.h"

#include <prometheus/client_metric.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <sstream>
#include <utility>

#include "base/files.h"

namespace evenkeel::base {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

const char* type_name(MetricType type) {
  switch (type) {
    case MetricType::Counter:
      return "counter";
    case MetricType::Gauge:
      return "gauge";
    case MetricType::Summary:
      return "summary";
    case MetricType::Histogram:
      return "histogram";
    case MetricType::Untyped:
      return "untyped";
  }
  return "untyped";
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  constexpr double kExact = 9007199254740992.0;  // 2^53: up to here a double holds every whole number
  if (std::abs(value) <= kExact && value == std::floor(value)) {
    return std::to_string(static_cast<std::int64_t>(value));
  }
  std::array<char, 64> text;
  const auto result =
      std::to_chars(text.data(), text.data() + text.size(), value);  // shortest that reads back
  return std::string(text.data(), result.ptr);
}

enum class Quote { kNo, kYes };  // HELP leaves quotes alone, label values do not

std::string escaped(std::string_view text, Quote quote) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\\\";
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '"' && quote == Quote::kYes) {
      result += "\\\"";
    } else {
      result += c;
    }
  }
  return result;
}

// One line: name + suffix, the labels and perhaps one more of them, the value.
class LineWriter {
 public:
  LineWriter(std::string& page, const std::string& name, const ClientMetric& metric)
      : page_(page), name_(name), metric_(metric) {
    for (const auto& label : metric.label) append(labels_, label.name, label.value);
  }

  void write(std::string_view suffix, const std::string& value, std::string_view name = "",
             const std::string& text = "") {
    page_.append(name_).append(suffix);
    std::string labels = labels_;
    if (!name.empty()) append(labels, name, text);
    if (!labels.empty()) page_.append("{").append(labels).append("}");
    page_.append(" ").append(value);
    if (metric_.timestamp_ms != 0) page_.append(" ").append(std::to_string(metric_.timestamp_ms));
    page_.append("\n");
  }

 private:
  static void append(std::string& labels, std::string_view name, const std::string& value) {
    if (!labels.empty()) labels += ',';
    labels.append(name).append("=\"").append(escaped(value, Quote::kYes)).append("\"");
  }

  std::string& page_;
  const std::string& name_;
  const ClientMetric& metric_;
  std::string labels_;
};

void write_histogram(LineWriter& line, const ClientMetric::Histogram& histogram) {
  bool has_infinity = false;
  for (const auto& bucket : histogram.bucket) {
    line.write("_bucket", std::to_string(bucket.cumulative_count), "le", number_text(bucket.upper_bound));
    has_infinity = has_infinity || std::isinf(bucket.upper_bound);
  }
  if (!has_infinity) line.write("_bucket", std::to_string(histogram.sample_count), "le", "+Inf");
  line.write("_sum", number_text(histogram.sample_sum));
  line.write("_count", std::to_string(histogram.sample_count));
}

void write_summary(LineWriter& line, const ClientMetric::Summary& summary) {
  for (const auto& quantile : summary.quantile) {
    line.write("", number_text(quantile.value), "quantile", number_text(quantile.quantile));
  }
  line.write("_sum", number_text(summary.sample_sum));
  line.write("_count", std::to_string(summary.sample_count));
}

void write_metric(std::string& page, const std::string& name, MetricType type, const ClientMetric& metric) {
  LineWriter line(page, name, metric);
  switch (type) {
    case MetricType::Counter:
      return line.write("", number_text(metric.counter.value));
    case MetricType::Gauge:
      return line.write("", number_text(metric.gauge.value));
    case MetricType::Untyped:
      return line.write("", number_text(metric.untyped.value));
    case MetricType::Histogram:
      return write_histogram(line, metric.histogram);
    case MetricType::Summary:
      return write_summary(line, metric.summary);
  }
}

MetricFamily single(const char* name, const char* help, MetricType type, double value) {
  ClientMetric metric;
  metric.counter.value = value;
  metric.gauge.value = value;
  return MetricFamily{name, help, type, {std::move(metric)}};
}

// The fields of /proc/self/stat after the program's name, which may itself hold spaces and brackets.
std::vector<double> stat_fields() {
  const auto text = real_files().read("/proc/self/stat", 8192);
  if (!text.ok()) return {};
  const std::size_t bracket = text->rfind(')');
  if (bracket == std::string::npos) return {};
  std::istringstream stream(text->substr(bracket + 1));
  std::vector<double> fields;
  for (std::string field; stream >> field;) fields.push_back(std::strtod(field.c_str(), nullptr));
  return fields;
}

double boot_time_seconds() {
  const auto text = real_files().read("/proc/stat", 4 << 20);
  const std::size_t at = text.ok() ? text->find("\nbtime ") : std::string::npos;
  return at == std::string::npos ? 0 : std::strtod(text->c_str() + at + 7, nullptr);
}

class ProcessMetrics : public prometheus::Collectable {
 public:
  ProcessMetrics() {
    constexpr std::size_t kStartTime = 19;  // field 22 of the page proc(5), counted after the name
    const auto fields = stat_fields();
    if (fields.size() > kStartTime) {
      start_time_seconds_ =
          boot_time_seconds() + fields[kStartTime] / static_cast<double>(sysconf(_SC_CLK_TCK));
    }
  }

  std::vector<MetricFamily> Collect() const override {
    std::vector<MetricFamily> families;
    const auto add = [&](const char* name, const char* help, MetricType type, double value) {
      families.push_back(single(name, help, type, value));
    };
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto in_seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    add("process_cpu_seconds_total", "CPU time used by this process, user and system.", MetricType::Counter,
        in_seconds(usage.ru_utime) + in_seconds(usage.ru_stime));
    add("process_start_time_seconds", "Start of this process, seconds since 1970.", MetricType::Gauge,
        start_time_seconds_);
    constexpr std::size_t kVirtualBytes = 20, kResidentPages = 21,
                          kThreads = 17;  // fields 23, 24 and 20 of proc(5)
    const auto fields = stat_fields();
    if (fields.size() > kResidentPages) {
      add("process_virtual_memory_bytes", "Virtual memory of this process.", MetricType::Gauge,
          fields[kVirtualBytes]);
      add("process_resident_memory_bytes", "Resident memory of this process.", MetricType::Gauge,
          fields[kResidentPages] * static_cast<double>(sysconf(_SC_PAGESIZE)));
      add("process_threads", "Threads of this process.", MetricType::Gauge, fields[kThreads]);
    }
    const auto open = real_files().list("/proc/self/fd");
    // The listing itself holds one.
    if (open.ok()) {
      add("process_open_fds", "Open file descriptors.", MetricType::Gauge,
          static_cast<double>(open->size()) - 1);
    }
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
      add("process_max_fds", "Most file descriptors that may be open.", MetricType::Gauge,
          static_cast<double>(limit.rlim_cur));
    }
    return families;
  }

 private:
  double start_time_seconds_ = 0;
};

}  // namespace

std::string serialize_metrics(const std::vector<MetricFamily>& families) {
  std::map<std::string_view, std::vector<const MetricFamily*>> by_name;
  for (const MetricFamily& family : families) {
    if (!family.metric.empty()) by_name[family.name].push_back(&family);
  }
  std::string page;
  for (const auto& [name, parts] : by_name) {
    const MetricFamily& first = *parts.front();
    page.append("# HELP ").append(name).append(" ").append(escaped(first.help, Quote::kNo)).append("\n");
    page.append("# TYPE ").append(name).append(" ").append(type_name(first.type)).append("\n");
    for (const MetricFamily* part : parts) {
      // Two types under one name would make the whole page unreadable; the first one stays.
      if (part->type != first.type) continue;
      for (const ClientMetric& metric : part->metric) write_metric(page, first.name, first.type, metric);
    }
  }
  return page;
}

void MetricsPage::add(std::shared_ptr<prometheus::Collectable> collectable) {
  collectables_.push_back(std::move(collectable));
}

std::string MetricsPage::text() const {
  std::vector<MetricFamily> all;
  for (const auto& collectable : collectables_) {
    std::vector<MetricFamily> families = collectable->Collect();
    std::move(families.begin(), families.end(), std::back_inserter(all));
  }
  return serialize_metrics(all);
}

std::shared_ptr<prometheus::Collectable> process_metrics() {
  return std::make_shared<ProcessMetrics>();
}

}  // namespace evenkeel::base
