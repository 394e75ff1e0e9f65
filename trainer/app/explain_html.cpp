#include "trainer/app/explain_html.h"

#include "trainer/app/explain_svg.h"
#include "trainer/app/explain_view.h"

namespace evenkeel::trainer {
namespace {

// No script runs and nothing is loaded, whatever a report says.
constexpr char kHead[] = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>Evenkeel: why N ranks are not N times faster</title>
<style>
:root { --page: #fbfbf9; --ink: #1d2329; --soft: #5b6570; --rule: #d5d9de; --empty: #eceef0;
  --useful: #2f6db5; --fixed: #2b8a7e; --capacity: #8a4f9e; --wait: #c8452f; --input: #b07a10;
  --rest: #6b7580; --gain: #5a9e2f; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14181c; --ink: #e6e9ec; --soft: #9aa5b0; --rule: #39424b; --empty: #232a31;
    --useful: #6aa5e8; --fixed: #58bfb0; --capacity: #c08ad4; --wait: #f07f68; --input: #dcae4e;
    --rest: #97a2ad; --gain: #93cf6b; }
}
body { background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; margin: 0 auto;
  max-width: 920px; padding: 24px 20px 60px; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 17px; margin: 34px 0 6px; }
p { margin: 6px 0; } .soft { color: var(--soft); }
.verdict { border-left: 4px solid var(--wait); padding: 4px 0 4px 14px; margin: 18px 0; }
.verdict.fine { border-color: var(--gain); } .verdict b { font-size: 18px; }
svg { display: block; width: 100%; height: auto; margin: 8px 0; } rect { shape-rendering: crispEdges; }
svg text { fill: var(--ink); font: 13px system-ui, sans-serif; }
svg text.small { fill: var(--soft); font-size: 11.5px; } svg text.strong { fill: var(--wait); font-weight: 600; }
svg text.end { text-anchor: end; }
.useful { fill: var(--useful); } .fixed { fill: var(--fixed); } .capacity { fill: var(--capacity); }
.wait { fill: var(--wait); } .input { fill: var(--input); } .rest { fill: var(--rest); }
.gain { fill: var(--gain); } .empty { fill: var(--empty); }
.axis { stroke: var(--rule); stroke-width: 1; }
polyline { fill: none; stroke-width: 1.5; stroke-linejoin: round; }
polyline.rank { stroke: var(--rest); } polyline.slowest { stroke: var(--wait); stroke-width: 2.5; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--soft); } td, th { padding: 4px 10px 4px 0;
  border-bottom: 1px solid var(--rule); } td.n, th.n { text-align: right; }
</style>
</head>
<body>
)";

std::string paragraph(const std::string& css, const std::string& text) {
  return text.empty() ? "" : "<p class=\"" + css + "\">" + escape_html(text) + "</p>\n";
}

std::string section(const std::string& title, const std::string& words, const std::string& picture) {
  if (picture.empty()) return "";
  return "<h2>" + escape_html(title) + "</h2>\n" + paragraph("soft", words) + picture;
}

std::string cell(const std::string& text, bool number = false) {
  return std::string("<td") + (number ? " class=\"n\">" : ">") + escape_html(text) + "</td>";
}

std::string head_section(const contract::JobReport& report) {
  const Explained view = explained(report);
  std::string title = "Where a step's time goes";
  if (view.in_ranks) {
    title = fixed_digits(view.ranks, 0) + " ranks do the work of " +
            fixed_digits(view.terms.front().ranks.value_or(0), 2);
  }
  const contract::Progress& p = report.progress;
  std::string what = std::string(contract::stage_name(report.stage)) + ", step " + std::to_string(p.step) +
                     " of " + std::to_string(p.target_steps);
  if (p.samples_per_second) what += ", " + fixed_digits(*p.samples_per_second, 0) + " samples/s";
  what += ", job " + report.job_uid + ", attempt " + std::to_string(report.attempt);
  const bool fine = report.diagnosis.verdict == "ScalingFine" || report.diagnosis.verdict == "Measuring";
  return "<h1>" + escape_html(title) + "</h1>\n" + paragraph("soft", what) + "<div class=\"verdict" +
         (fine ? " fine" : "") + "\"><b>" + escape_html(report.diagnosis.verdict) + "</b>\n" +
         paragraph("", report.diagnosis.message) + "</div>\n";
}

std::string waterfall_section(const contract::JobReport& report) {
  std::string words = explained(report).baseline;
  if (report.waterfall) {
    words += " A step takes " + fixed_digits(report.waterfall->step_seconds * 1000, 2) + " ms.";
    if (report.waterfall->residue_seconds) {
      words += " Seen by the coordinator's clock and by no timer: " +
               fixed_digits(*report.waterfall->residue_seconds * 1000, 2) + " ms of each step.";
    }
  }
  return section("The waterfall", words, waterfall_svg(report));
}

std::string remedies_section(const contract::JobReport& report) {
  std::string html = "<h2>Remedies</h2>\n";
  const contract::Balance& b = report.balance;
  std::string words =
      "Shares were changed " + std::to_string(b.rebalances) + (b.rebalances == 1 ? " time" : " times");
  if (!b.mode.empty()) words += " (balance.mode " + b.mode + ")";
  if (b.balanced && !*b.balanced) {
    words += "; not balanced: " + b.reason;
    if (b.loss_left) words += ", at best " + percent_text(*b.loss_left) + " of a step is lost";
  }
  html += paragraph("soft", words + ".");
  if (report.diagnosis.remedies.empty()) return html + paragraph("", "None is known to gain 2% or more.");
  html +=
      "<div class=\"scroll\"><table>\n<tr><th>what</th><th class=\"n\">predicted</th><th "
      "class=\"n\">measured</th>"
      "<th class=\"n\">to the same loss</th><th>state</th></tr>\n";
  for (const contract::Remedy& r : report.diagnosis.remedies) {
    html += "<tr>" + cell(r.action) + cell(percent_text(r.predicted_gain), true) +
            cell(r.measured_gain ? percent_text(*r.measured_gain) : "\xe2\x80\x93", true) +
            cell(r.predicted_loss_gain ? percent_text(*r.predicted_loss_gain) : "\xe2\x80\x93", true) +
            cell(state_text(r.state)) + "</tr>\n";
  }
  return html + "</table></div>\n";
}

std::string ranks_section(const contract::JobReport& report) {
  if (report.replicas.empty()) return "";
  std::string html =
      "<h2>Ranks</h2>\n<div class=\"scroll\"><table>\n<tr><th class=\"n\">rank</th><th>pod</th><th>node</th>"
      "<th>state</th><th class=\"n\">share</th><th class=\"n\">busy ms</th><th class=\"n\">speed</th>"
      "<th class=\"n\">samples</th></tr>\n";
  for (const contract::ReplicaReport& r : report.replicas) {
    html += "<tr>" + cell(std::to_string(r.rank), true) + cell(r.pod) + cell(r.node) + cell(r.state) +
            cell(r.share ? percent_text(*r.share, 1) : "", true) +
            cell(r.busy_seconds ? fixed_digits(*r.busy_seconds * 1000, 2) : "", true) +
            cell(r.relative_performance ? fixed_digits(*r.relative_performance, 2) : "", true) +
            cell(std::to_string(r.consumed), true) + "</tr>\n";
  }
  return html + "</table></div>\n";
}

}  // namespace

std::string explain_html(const contract::JobReport& report) {
  return std::string(kHead) + head_section(report) + waterfall_section(report) + remedies_section(report) +
         section("Each rank over time",
                 "A step lasts as long for every rank; who waits least is the one the others wait for.",
                 phases_svg(report)) +
         section("Shares over time", "Of the samples of a step. The rank with the least speed stands out.",
                 shares_svg(report)) +
         section("Who is waited for",
                 "Which rank is the last in each step; the stronger the colour, the longer the others wait "
                 "for it.",
                 waited_for_svg(report)) +
         ranks_section(report) + "</body>\n</html>\n";
}

}  // namespace evenkeel::trainer
