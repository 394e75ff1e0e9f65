#include "trainer/app/explain_text.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "trainer/app/explain_view.h"

namespace evenkeel::trainer {
namespace {

constexpr double kBarWidth = 40;  // characters for the whole job

// A report may come from anywhere: its words must not move the cursor.
std::string printable(const std::string& text) {
  std::string clean;
  for (const char c : text) clean += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return clean;
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string right(std::string text, std::size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

std::string bar(double part) {
  const long cells = std::lround(std::clamp(std::abs(part), 0.0, 1.5) * kBarWidth);
  std::string text;
  for (long i = 0; i < cells; ++i) text += part < 0 ? "-" : "#";
  return text;
}

std::string waterfall_lines(const contract::JobReport& report) {
  const Explained view = explained(report);
  if (view.terms.empty()) return "No numbers yet: " + printable(report.diagnosis.message) + "\n";
  std::string text;
  double sum = 0;
  if (view.in_ranks) {
    text += fixed_digits(view.ranks, 0) + " ranks do the work of " +
            fixed_digits(*view.terms.front().ranks, 2) + ". Where the others go:\n\n";
  } else {
    text += "Where a step's time goes:\n\n";
  }
  for (const ExplainedTerm& term : view.terms) {
    const double part = view.in_ranks ? *term.ranks / std::max(1.0, view.ranks) : term.share;
    sum += view.in_ranks ? *term.ranks : term.share;
    text += "  " + padded(printable(term.label), 25) +
            right(view.in_ranks ? fixed_digits(*term.ranks, 2) : percent_text(term.share, 1), 7);
    if (term.seconds) text += right(fixed_digits(*term.seconds * 1000, 2) + " ms", 13);
    const std::string drawn = bar(part);
    text += drawn.empty() ? "\n" : "  " + drawn + "\n";
  }
  text += "  " + padded("", 25) + right(view.in_ranks ? fixed_digits(sum, 2) : percent_text(sum, 1), 7);
  if (report.waterfall) text += right(fixed_digits(report.waterfall->step_seconds * 1000, 2) + " ms", 13);
  text += "\n";
  if (!view.baseline.empty()) text += "  " + view.baseline + "\n";
  if (report.waterfall && report.waterfall->residue_seconds) {
    text += "  Seen by the clock of the coordinator and by no timer: " +
            fixed_digits(*report.waterfall->residue_seconds * 1000, 2) + " ms of each step.\n";
  }
  return text;
}

std::string balance_line(const contract::Balance& b) {
  std::string text = "Balance: ";
  if (!b.mode.empty()) text += "mode " + printable(b.mode) + ", ";
  text += std::to_string(b.rebalances) + (b.rebalances == 1 ? " change" : " changes") + " of the shares";
  if (b.imbalance_ratio) text += ", imbalance " + percent_text(*b.imbalance_ratio);
  if (b.balanced) text += *b.balanced ? ", balanced" : ", not balanced: " + printable(b.reason);
  if (b.balanced && !*b.balanced && b.loss_left)
    text += "; the best shares that are possible lose " + percent_text(*b.loss_left) + " of a step";
  return text + "\n";
}

std::string remedy_lines(const std::vector<contract::Remedy>& remedies) {
  if (remedies.empty()) return "Remedies: none is known to gain 2% or more.\n";
  std::string text = "Remedies, best first:\n\n  " + padded("PREDICTED", 11) + padded("MEASURED", 10) +
                     padded("STATE", 13) + "WHAT\n";
  for (const contract::Remedy& r : remedies) {
    text += "  " + padded(percent_text(r.predicted_gain), 11) +
            padded(r.measured_gain ? percent_text(*r.measured_gain) : "-", 10) +
            padded(state_text(r.state), 13) + printable(r.action);
    if (r.predicted_loss_gain) text += " (to the same loss: " + percent_text(*r.predicted_loss_gain) + ")";
    text += "\n";
  }
  return text;
}

std::string rank_lines(const std::vector<contract::ReplicaReport>& replicas) {
  if (replicas.empty()) return "";
  std::string text = "Ranks:\n\n  RANK   SHARE   BUSY ms  SPEED  POD\n";
  for (const contract::ReplicaReport& r : replicas) {
    text += "  " + right(std::to_string(r.rank), 4) + right(r.share ? percent_text(*r.share, 1) : "-", 8) +
            right(r.busy_seconds ? fixed_digits(*r.busy_seconds * 1000, 2) : "-", 10) +
            right(r.relative_performance ? fixed_digits(*r.relative_performance, 2) : "-", 7) + "  " +
            printable(r.pod.empty() ? r.state : r.pod) + "\n";
  }
  return text;
}

}  // namespace

std::string explain_text(const contract::JobReport& report) {
  const contract::Progress& p = report.progress;
  std::string text = "Job " + printable(report.job_uid) + ", attempt " + std::to_string(report.attempt) +
                     ": " + contract::stage_name(report.stage) + ", step " + std::to_string(p.step) + " of " +
                     std::to_string(p.target_steps);
  if (p.samples_per_second) text += ", " + fixed_digits(*p.samples_per_second, 0) + " samples/s";
  text += "\n\n" + waterfall_lines(report) + "\n";
  text += printable(report.diagnosis.verdict) + ": " + printable(report.diagnosis.message) + "\n";
  if (!report.sharding.empty()) text += "Sharding " + printable(report.sharding) + "\n";
  if (p.skipped > 0) text += "Skipped " + std::to_string(p.skipped) + " records that cannot be read\n";
  text += balance_line(report.balance) + "\n" + remedy_lines(report.diagnosis.remedies);
  const std::string ranks = rank_lines(report.replicas);
  return ranks.empty() ? text : text + "\n" + ranks;
}

}  // namespace evenkeel::trainer
