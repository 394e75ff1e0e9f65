#include "trainer/app/explain_svg.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "trainer/app/explain_view.h"

namespace evenkeel::trainer {
namespace {

using contract::HistoryPoint;
using contract::HistoryRank;

constexpr double kWidth = 860;
constexpr std::size_t kMostRows = 8;    // of small pictures by rank
constexpr std::size_t kMostCells = 32;  // ranks in the grid of who is waited for

std::string n(double value) {
  const std::string text = fixed_digits(std::isfinite(value) ? value : 0, 1);
  return text == "?" ? "0" : text;
}

// A class of the page, whatever the report calls its term.
std::string colour_of(const std::string& key) {
  for (const char* known : {"useful", "fixed", "capacity", "wait", "input"}) {
    if (key == known) return known;
  }
  return "rest";
}

std::string open_svg(double height, const std::string& name) {
  return "<svg viewBox=\"0 0 " + n(kWidth) + " " + n(height) + "\" role=\"img\" aria-label=\"" +
         escape_html(name) + "\">\n";
}

std::string rect(const std::string& css, double x, double y, double w, double h, const std::string& tip) {
  return "<rect class=\"" + css + "\" x=\"" + n(x) + "\" y=\"" + n(y) + "\" width=\"" + n(std::max(0.0, w)) +
         "\" height=\"" + n(std::max(0.0, h)) + "\">" +
         (tip.empty() ? "" : "<title>" + escape_html(tip) + "</title>") + "</rect>\n";
}

std::string label(const std::string& css, double x, double y, const std::string& text) {
  return "<text class=\"" + css + "\" x=\"" + n(x) + "\" y=\"" + n(y) + "\">" + escape_html(text) +
         "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2) {
  return "<line class=\"axis\" x1=\"" + n(x1) + "\" y1=\"" + n(y1) + "\" x2=\"" + n(x2) + "\" y2=\"" + n(y2) +
         "\"/>\n";
}

// Steps from the first to the last point, from left to right.
class StepAxis {
 public:
  StepAxis(const std::vector<HistoryPoint>& history, double left, double right) : left_(left), right_(right) {
    first_ = static_cast<double>(history.front().step - std::max<std::int64_t>(1, history.front().steps));
    last_ = std::max(first_ + 1, static_cast<double>(history.back().step));
  }
  double at(double step) const {
    return left_ + (right_ - left_) * std::clamp((step - first_) / (last_ - first_), 0.0, 1.0);
  }
  double begin(const HistoryPoint& point) const { return at(static_cast<double>(point.step - point.steps)); }
  double end(const HistoryPoint& point) const { return at(static_cast<double>(point.step)); }
  double middle(const HistoryPoint& point) const { return (begin(point) + end(point)) / 2; }
  std::string labels(double y) const {
    return label("small", left_, y, "step " + n_whole(first_ + 1)) +
           label("small end", right_, y, n_whole(last_));
  }

 private:
  static std::string n_whole(double value) { return fixed_digits(value, 0); }
  double left_, right_, first_ = 0, last_ = 1;
};

double own(const HistoryRank& rank) {
  return rank.compute_seconds + rank.input_seconds;
}

const HistoryRank* of_rank(const HistoryPoint& point, int rank) {
  for (const HistoryRank& one : point.ranks) {
    if (one.rank == rank) return &one;
  }
  return nullptr;
}

std::vector<int> all_ranks(const contract::JobReport& report) {
  std::set<int> ranks;
  for (const HistoryPoint& point : report.history) {
    for (const HistoryRank& rank : point.ranks) ranks.insert(rank.rank);
  }
  return {ranks.begin(), ranks.end()};
}

// At most so many: those with the most time of their own for a sample, in the order of their numbers.
std::vector<int> slowest_ranks(const contract::JobReport& report, std::size_t most) {
  std::vector<int> ranks = all_ranks(report);
  if (ranks.size() <= most) return ranks;
  std::map<int, std::pair<double, double>> sums;
  for (const HistoryPoint& point : report.history) {
    for (const HistoryRank& rank : point.ranks) {
      sums[rank.rank].first += own(rank);
      sums[rank.rank].second += rank.samples;
    }
  }
  const auto cost = [&](int rank) {
    return sums[rank].second > 0 ? sums[rank].first / sums[rank].second : 0;
  };
  std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) { return cost(a) > cost(b); });
  ranks.resize(most);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::string key(const std::string& css, const std::string& name, double& x) {
  const std::string drawn = rect(css, x, 4, 12, 12, "") + label("small", x + 17, 14, name);
  x += 35 + 6.4 * static_cast<double>(name.size());
  return drawn;
}

}  // namespace

std::string escape_html(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

// From the left what is reached, then each loss where the one before ends, up to all ranks.
std::string waterfall_svg(const contract::JobReport& report) {
  const Explained view = explained(report);
  if (view.terms.empty()) return "";
  constexpr double kRow = 30, kLeft = 190, kRight = kWidth - 130;
  const double height = kRow * static_cast<double>(view.terms.size()) + 30;
  const auto value = [&](const ExplainedTerm& term) { return view.in_ranks ? *term.ranks : term.share; };
  // Terms are signed: the axis covers every end that a bar has.
  double low = 0, high = 0, at = 0;
  for (const ExplainedTerm& term : view.terms) {
    at += value(term);
    low = std::min(low, at);
    high = std::max(high, at);
  }
  const double total = at;
  const double span = std::max(1e-12, high - low);
  const auto x = [&](double v) { return kLeft + (kRight - kLeft) * (v - low) / span; };
  std::string svg = open_svg(height, "Waterfall from the ranks of the job to the speed they reach");
  at = 0;
  double y = 6;
  for (const ExplainedTerm& term : view.terms) {
    const double from = at, to = at + value(term);
    const std::string amount =
        view.in_ranks ? fixed_digits(*term.ranks, 2) + " ranks" : percent_text(term.share, 1);
    const std::string time = term.seconds ? fixed_digits(*term.seconds * 1000, 2) + " ms of a step" : "";
    svg += label("end", kLeft - 10, y + 16, term.label);
    svg += rect(value(term) < 0 ? "gain" : colour_of(term.key), x(std::min(from, to)), y,
                std::abs(x(to) - x(from)), kRow - 8,
                term.label + ": " + amount + (time.empty() ? "" : ", " + time));
    svg += label("", x(std::max(from, to)) + 8, y + 16, amount);
    svg += line(x(to), y + kRow - 8, x(to), y + kRow);
    at = to;
    y += kRow;
  }
  svg += line(kLeft, y, kRight, y);
  svg += label("small end", x(total), y + 16,
               view.in_ranks ? fixed_digits(total, 2) + " of " + fixed_digits(view.ranks, 0) + " ranks"
                             : percent_text(total, 0) + " of a step");
  return svg + "</svg>\n";
}

std::string phases_svg(const contract::JobReport& report) {
  if (report.history.empty()) return "";
  constexpr double kRow = 64, kLeft = 70, kRight = kWidth - 90;
  const std::vector<int> ranks = slowest_ranks(report, kMostRows);
  const StepAxis axis(report.history, kLeft, kRight);
  double longest = 1e-9;
  for (const HistoryPoint& point : report.history) longest = std::max(longest, point.step_seconds);
  const double height = 26 + (kRow + 8) * static_cast<double>(ranks.size()) + 22;
  std::string svg = open_svg(height, "Where each rank's time goes, over the steps");
  double x = kLeft;
  svg += key("useful", "computing", x);
  svg += key("input", "waiting for data", x);
  svg += key("wait", "waiting for the slowest", x);
  svg += key("rest", "communication", x);
  double y = 26;
  for (const int rank : ranks) {
    svg += label("end", kLeft - 10, y + kRow / 2, "rank " + std::to_string(rank));
    for (const HistoryPoint& point : report.history) {
      const HistoryRank* one = of_rank(point, rank);
      if (one == nullptr) continue;
      double slowest = 0;
      for (const HistoryRank& other : point.ranks) slowest = std::max(slowest, own(other));
      const double waits = slowest - own(*one);
      const double rest = std::max(0.0, point.step_seconds - slowest);
      const std::string tip = "step " + std::to_string(point.step) + ", rank " + std::to_string(rank) +
                              ": computing " + fixed_digits(one->compute_seconds * 1000, 1) +
                              " ms, waiting for data " + fixed_digits(one->input_seconds * 1000, 1) +
                              " ms, for the slowest " + fixed_digits(waits * 1000, 1) +
                              " ms, communication " + fixed_digits(rest * 1000, 1) + " ms";
      double bottom = y + kRow;
      const auto part = [&](const char* css, double seconds) {
        const double tall = kRow * std::max(0.0, seconds) / longest;
        bottom -= tall;
        // A hair wider than the point, so that no gap shows between two.
        svg += rect(css, axis.begin(point), bottom, axis.end(point) - axis.begin(point) + 0.3, tall, tip);
      };
      part("useful", one->compute_seconds);
      part("input", one->input_seconds);
      part("wait", waits);
      part("rest", rest);
    }
    svg += line(kLeft, y + kRow, kRight, y + kRow);
    if (rank == ranks.front())
      svg += label("small", kRight + 6, y + 8, fixed_digits(longest * 1000, 1) + " ms");
    y += kRow + 8;
  }
  return svg + axis.labels(y + 10) + "</svg>\n";
}

std::string shares_svg(const contract::JobReport& report) {
  if (report.history.empty()) return "";
  constexpr double kLeft = 70, kRight = kWidth - 90, kTop = 14, kTall = 200;
  const StepAxis axis(report.history, kLeft, kRight);
  const auto share = [](const HistoryPoint& point, const HistoryRank& rank) {
    double all = 0;
    for (const HistoryRank& one : point.ranks) all += one.samples;
    return all > 0 ? rank.samples / all : 0;
  };
  double most = 1e-9;
  for (const HistoryPoint& point : report.history) {
    for (const HistoryRank& rank : point.ranks) most = std::max(most, share(point, rank));
  }
  const double ceiling = std::min(1.0, most * 1.1);
  const auto height_of = [&](double v) { return kTop + kTall * (1 - v / ceiling); };
  const int marked = report.balance.slowest_rank.value_or(-1);
  std::string svg = open_svg(kTop + kTall + 26, "Share of the samples by rank, over the steps");
  std::string marked_line;
  double last_label = -100;
  for (const int rank : all_ranks(report)) {
    std::string points;
    double end_x = kLeft, end_y = kTop;
    for (const HistoryPoint& point : report.history) {
      const HistoryRank* one = of_rank(point, rank);
      if (one == nullptr) continue;
      end_x = axis.middle(point);
      end_y = height_of(share(point, *one));
      points += (points.empty() ? "" : " ") + n(end_x) + "," + n(end_y);
    }
    const std::string drawn = "<polyline class=\"" + std::string(rank == marked ? "slowest" : "rank") +
                              "\" points=\"" + points + "\"><title>rank " + std::to_string(rank) +
                              "</title></polyline>\n";
    if (rank == marked) {
      marked_line = drawn + label("strong", end_x + 8, end_y + 4, "rank " + std::to_string(rank));
    } else {
      svg += drawn;
      if (std::abs(end_y - last_label) > 12)
        svg += label("small", end_x + 8, end_y + 4, "rank " + std::to_string(rank));
      last_label = end_y;
    }
  }
  svg += marked_line;  // above the others
  svg += line(kLeft, kTop, kLeft, kTop + kTall) + line(kLeft, kTop + kTall, kRight, kTop + kTall);
  svg += label("small end", kLeft - 6, kTop + 8, percent_text(ceiling)) +
         label("small end", kLeft - 6, kTop + kTall, "0%");
  return svg + axis.labels(kTop + kTall + 18) + "</svg>\n";
}

std::string waited_for_svg(const contract::JobReport& report) {
  if (report.history.empty()) return "";
  constexpr double kRow = 18, kLeft = 70, kRight = kWidth - 90, kTop = 6;
  const std::vector<int> ranks = slowest_ranks(report, kMostCells);
  const StepAxis axis(report.history, kLeft, kRight);
  const double height = kTop + kRow * static_cast<double>(ranks.size()) + 24;
  std::string svg = open_svg(height, "Who is waited for, over the steps");
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const double y = kTop + kRow * static_cast<double>(i);
    svg += label("small end", kLeft - 10, y + 13, "rank " + std::to_string(ranks[i]));
    svg += rect("empty", kLeft, y, kRight - kLeft, kRow - 2, "");
  }
  for (const HistoryPoint& point : report.history) {
    if (point.ranks.size() < 2 || point.step_seconds <= 0) continue;
    const HistoryRank* last = &point.ranks.front();
    double second = 0;
    for (const HistoryRank& rank : point.ranks) {
      if (own(rank) > own(*last)) last = &rank;
    }
    for (const HistoryRank& rank : point.ranks) {
      if (&rank != last) second = std::max(second, own(rank));
    }
    const auto row = std::find(ranks.begin(), ranks.end(), last->rank);
    if (row == ranks.end()) continue;
    const double waited = std::clamp((own(*last) - second) / point.step_seconds, 0.0, 1.0);
    const double y = kTop + kRow * static_cast<double>(row - ranks.begin());
    svg += "<rect class=\"wait\" style=\"opacity:" + fixed_digits(std::min(1.0, 0.08 + 2 * waited), 2) +
           "\" x=\"" + n(axis.begin(point)) + "\" y=\"" + n(y) + "\" width=\"" +
           n(axis.end(point) - axis.begin(point) + 0.3) + "\" height=\"" + n(kRow - 2) + "\"><title>step " +
           std::to_string(point.step) + ": rank " + std::to_string(last->rank) + " is last, " +
           percent_text(waited, 1) + " of the step after the one before it</title></rect>\n";
  }
  return svg + axis.labels(height - 4) + "</svg>\n";
}

}  // namespace evenkeel::trainer
