#include "trainer/local/local_table.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "base/time_text.h"

namespace evenkeel::trainer {
namespace {

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

std::string or_dash(const std::optional<double>& value, int digits, double factor = 1) {
  return value ? fixed(*value * factor, digits) : "-";
}

std::string duration(double seconds) {
  return base::human_duration(
      std::chrono::nanoseconds(static_cast<std::int64_t>(std::max(0.0, seconds) * 1e9)));
}

// Of a mean step: what the rank spends waiting for the slowest.
std::optional<double> wait_of(const contract::JobReport& report, const contract::ReplicaReport& replica) {
  if (!replica.busy_seconds) return std::nullopt;
  double slowest = 0;
  for (const auto& other : report.replicas) slowest = std::max(slowest, other.busy_seconds.value_or(0));
  return slowest - *replica.busy_seconds;
}

std::string cells(const std::vector<std::string>& texts) {
  const int widths[] = {4, 9, 11, 9, 9, 9, 11, 9};
  std::ostringstream out;
  for (std::size_t i = 0; i < texts.size(); ++i)
    out << std::setw(widths[i]) << texts[i] << (i + 1 < texts.size() ? "  " : "");
  return out.str() + "\n";
}

std::string rank_line(const contract::JobReport& report, const contract::ReplicaReport& r) {
  return cells({std::to_string(r.rank), r.state, or_dash(r.samples_per_second, 0),
                or_dash(r.busy_seconds, 2, 1000), or_dash(wait_of(report, r), 2, 1000),
                or_dash(r.relative_performance, 2), std::to_string(r.consumed),
                r.cpu_limit > 0 ? fixed(r.cpu_limit, 2) : "-"});
}

std::string results_text(const contract::Progress& p) {
  std::string text;
  if (p.loss) text += ", loss " + fixed(*p.loss, 4);
  if (p.accuracy) text += ", test accuracy " + fixed(*p.accuracy, 4);
  return text;
}

// What was done, with what it gained.
std::string remedies_text(const contract::JobReport& report) {
  std::string text;
  for (const contract::Remedy& r : report.diagnosis.remedies) {
    const bool done =
        r.state == contract::RemedyState::kApplied || r.state == contract::RemedyState::kReverted;
    if (!done) continue;
    text += std::string(contract::remedy_state_name(r.state)) + ": " + r.action + ", predicted gain " +
            fixed(r.predicted_gain * 100, 0) + "%, measured " +
            (r.measured_gain ? fixed(*r.measured_gain * 100, 0) + "%" : "not yet") + "\n";
  }
  return text;
}

}  // namespace

std::string line_text(const contract::JobReport& report, double elapsed_seconds) {
  const contract::Progress& p = report.progress;
  std::string text = duration(elapsed_seconds) + "  " + contract::stage_name(report.stage);
  if (p.target_steps == 0) return text + ": " + report.message;
  text += ": step " + std::to_string(p.step) + "/" + std::to_string(p.target_steps) + ", epoch " +
          std::to_string(p.epoch);
  if (p.samples_per_second) text += ", " + fixed(*p.samples_per_second, 0) + " samples/s";
  text += results_text(p);
  if (report.balance.imbalance_ratio) text += ", imbalance " + fixed(*report.balance.imbalance_ratio, 2);
  if (p.eta_seconds) text += ", " + duration(*p.eta_seconds) + " left";
  return text;
}

std::string table_text(const contract::JobReport& report, double elapsed_seconds) {
  std::string text = line_text(report, elapsed_seconds) + "\n";
  text += cells({"RANK", "STATE", "SAMPLES/S", "BUSY ms", "WAIT ms", "REL.PERF", "CONSUMED", "CPU"});
  for (const contract::ReplicaReport& replica : report.replicas) text += rank_line(report, replica);
  return text + report.diagnosis.verdict + ": " + report.diagnosis.message + "\n" + remedies_text(report);
}

std::string summary_text(const contract::JobReport& report, double elapsed_seconds, int exit_code) {
  const contract::Progress& p = report.progress;
  std::string text = std::string(contract::stage_name(report.stage)) + " in " + duration(elapsed_seconds) +
                     ": " + std::to_string(p.step) + " of " + std::to_string(p.target_steps) + " steps, " +
                     std::to_string(p.samples) + " samples" + results_text(p) + "\n";
  if (exit_code != 0) text += report.message + "\n";
  return text + report.diagnosis.verdict + ": " + report.diagnosis.message + "\n" + remedies_text(report);
}

std::string Redraw::frame(const std::string& text) {
  std::string out = lines_ > 0 ? "\033[" + std::to_string(lines_) + "A\r\033[J" : "";
  lines_ = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  return out + text;
}

}  // namespace evenkeel::trainer
