#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>

#include "base/files_fake.h"
#include "contract/report.h"
#include "trainer/app/explain_command.h"
#include "trainer/app/explain_html.h"
#include "trainer/app/explain_svg.h"
#include "trainer/app/explain_text.h"
#include "trainer/app/explain_view.h"

namespace evenkeel::trainer {
namespace {

using contract::JobReport;
using contract::RemedyState;
using ::testing::HasSubstr;
using ::testing::Not;

// The worked example A: one of four ranks at two thirds, relieved after a while.
JobReport sample() {
  JobReport report;
  report.job_uid = "job-1";
  report.attempt = 1;
  report.stage = contract::JobStage::kRunning;
  report.ranks = report.joined = 4;
  report.progress.step = 120;
  report.progress.target_steps = 500;
  report.progress.samples_per_second = 1600;
  report.diagnosis = {
      "Straggler",
      "rank 3 runs at 0.67 of the others; 22% of each step is waiting for it",
      {0.6, 0.0, 0.0125, 0.3, 0.0875},
      {{"shares by speed, for rank 3", 0.32, 0.3, RemedyState::kApplied, std::nullopt},
       {"batch x2: 256 -> 512 samples a step", 0.04, std::nullopt, RemedyState::kNotAllowed, -0.1}}};
  report.balance = {0.37, 3, 0.625, 1, "Rebalance", false, "groups of 16 samples stay together", 0.07};
  report.waterfall = contract::WaterfallReport{4,
                                               0.16,
                                               2.5,
                                               {{"useful", 0.096, std::nullopt},
                                                {"fixed", 0.0, 0.0},
                                                {"capacity", 0.012, 0.3},
                                                {"wait", 0.036, 0.9},
                                                {"input", 0.002, 0.0},
                                                {"rest", 0.014, 0.3}},
                                               -0.001,
                                               "measured"};
  for (int i = 1; i <= 12; ++i) {
    contract::HistoryPoint point{10 * i, 10, i < 4 ? 0.16 : 0.121, {}};
    for (int r = 0; r < 4; ++r) {
      const double n = i < 4 ? 64 : (r == 3 ? 46 : 70);
      point.ranks.push_back({r, n, n * (r == 3 ? 0.00225 : 0.0015), 0.002});
    }
    report.history.push_back(point);
  }
  for (int r = 0; r < 4; ++r) {
    contract::ReplicaReport replica;
    replica.rank = r;
    replica.pod = "job-1-worker-" + std::to_string(r) + "-1";
    replica.state = "stepping";
    replica.share = r == 3 ? 0.18 : 0.2733;
    replica.busy_seconds = 0.107;
    replica.relative_performance = r == 3 ? 0.67 : 1.0;
    report.replicas.push_back(replica);
  }
  return report;
}

TEST(ExplainText, shows_the_waterfall_from_the_ranks_to_the_speed_reached) {
  const std::string text = explain_text(sample());
  EXPECT_THAT(text, HasSubstr("4 ranks do the work of 2.50."));
  EXPECT_THAT(text, HasSubstr("useful work                 2.50     96.00 ms  #########################\n"));
  EXPECT_THAT(text, HasSubstr("waiting for the slowest     0.90     36.00 ms  #########\n"));
  EXPECT_THAT(text, HasSubstr("   4.00    160.00 ms\n"));
  EXPECT_THAT(text, HasSubstr("One rank alone was measured"));
  EXPECT_THAT(text, HasSubstr("no timer: -1.00 ms"));
  EXPECT_THAT(text, HasSubstr("Straggler: rank 3 runs at 0.67 of the others"));
  EXPECT_THAT(text, HasSubstr("not balanced: groups of 16 samples stay together"));
  EXPECT_THAT(text, HasSubstr("  32%        30%       applied      shares by speed, for rank 3\n"));
  EXPECT_THAT(text, HasSubstr("  4%         -         not allowed  batch x2"));
  EXPECT_THAT(text, HasSubstr("(to the same loss: -10%)"));
  EXPECT_THAT(text, HasSubstr("     3   18.0%    107.00   0.67  job-1-worker-3-1\n"));
}

TEST(ExplainText, without_a_baseline_it_speaks_of_a_step) {
  JobReport report = sample();
  report.waterfall =
      contract::WaterfallReport{4,
                                0.16,
                                std::nullopt,
                                {{"usefulAndFixed", 0.096, std::nullopt}, {"wait", 0.064, std::nullopt}},
                                std::nullopt,
                                "none"};
  const std::string text = explain_text(report);
  EXPECT_THAT(text, HasSubstr("Where a step's time goes"));
  EXPECT_THAT(text, HasSubstr("computing                  60.0%     96.00 ms"));
  EXPECT_THAT(text, HasSubstr("There is no baseline"));
  report.waterfall.reset();
  EXPECT_THAT(explain_text(report), HasSubstr("imbalance                  30.0%  ############\n"));
  report.diagnosis.losses = {};
  EXPECT_THAT(explain_text(report), HasSubstr("No numbers yet"));
}

TEST(ExplainText, words_of_a_report_do_not_move_the_cursor) {
  JobReport report = sample();
  report.diagnosis.message = "\x1b[2J";
  report.job_uid = "a\nb";
  EXPECT_THAT(explain_text(report), Not(HasSubstr("\x1b")));
  EXPECT_THAT(explain_text(report), HasSubstr("Job a b"));
}

// Every element that is opened is closed, in order.
std::string unclosed(const std::string& html) {
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const std::size_t end = html.find('>', at);
    if (end == std::string::npos) return "an element has no end";
    std::string tag = html.substr(at + 1, end - at - 1);
    if (tag[0] == '!' || tag.back() == '/' || tag.rfind("meta", 0) == 0) continue;
    const bool closes = tag[0] == '/';
    tag = tag.substr(closes ? 1 : 0, tag.find(' ') - (closes && tag.find(' ') != std::string::npos ? 1 : 0));
    if (!closes) {
      open.push_back(tag);
    } else {
      if (open.empty() || open.back() != tag)
        return "</" + tag + "> closes " + (open.empty() ? "" : open.back());
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back() + " is left open";
}

TEST(ExplainHtml, is_one_well_formed_page_without_network_or_script) {
  const std::string html = explain_html(sample());
  EXPECT_EQ(unclosed(html), "");
  for (const char* never :
       {"<script", "http://", "https://", "src=", "url(", "@import", "<link", "nan", "inf\""})
    EXPECT_THAT(html, Not(HasSubstr(never)));
  for (const char* picture :
       {"Waterfall from", "Where each rank", "Share of the samples", "Who is waited for"})
    EXPECT_THAT(html, HasSubstr(std::string("aria-label=\"") + picture));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(html, HasSubstr("4 ranks do the work of 2.50"));
  EXPECT_THAT(
      html, HasSubstr("step 10, rank 3: computing 144.0 ms, waiting for data 2.0 ms, for the slowest 0.0 ms, "
                      "communication 14.0 ms"));
}

TEST(ExplainHtml, text_of_the_report_is_escaped_everywhere) {
  const std::string evil = "</title><script>alert(\"x\")</script>'&";
  JobReport report = sample();
  report.job_uid = report.diagnosis.verdict = report.diagnosis.message = report.balance.reason = evil;
  report.balance.mode = report.waterfall->baseline = report.waterfall->terms[3].name = evil;
  report.diagnosis.remedies[0].action = evil;
  report.replicas[0].pod = report.replicas[0].node = report.replicas[0].state = evil;
  const std::string html = explain_html(report);
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("alert(\"")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&#39;&amp;"));
}

TEST(ExplainHtml, odd_reports_make_a_page_too) {
  JobReport empty;
  EXPECT_EQ(unclosed(explain_html(empty)), "");
  JobReport odd = sample();
  odd.history = {
      {0, 0, 0, {}}, {5, 1, -1, {{7, -5, 1e300, -1e300}}}, {3, 9, 1e300, {{7, 0, 0, 0}, {8, 1, 1, 1}}}};
  odd.waterfall->terms[2].ranks = -1e18;
  odd.waterfall->terms[3].seconds = 1e300;
  const std::string html = explain_html(odd);
  EXPECT_EQ(unclosed(html), "");
  EXPECT_THAT(html, Not(HasSubstr("nan")));
  EXPECT_THAT(html, Not(HasSubstr("\"inf")));
  JobReport many = sample();
  for (contract::HistoryPoint& point : many.history) {
    for (int r = 4; r < 150; ++r) point.ranks.push_back({r, 64, 0.09, 0.001});
  }
  EXPECT_EQ(unclosed(explain_html(many)), "");
}

TEST(ExplainView, reads_every_kind_of_report) {
  const base::Json plain = contract::to_json(sample());
  EXPECT_EQ(report_of(plain)->diagnosis.verdict, "Straggler");
  const base::Json local = {{"suite", "local"}, {"explain", plain}};
  EXPECT_EQ(report_of(local)->history.size(), 12u);
  base::Json job = {{"kind", "TrainingJob"},
                    {"metadata", {{"uid", "u"}}},
                    {"spec", {{"workers", {{"replicas", 4}}}}},
                    {"status",
                     {{"phase", "Succeeded"},
                      {"attempt", 2},
                      {"progress", {{"step", 9}, {"percent", 100}, {"eta", "0s"}}},
                      {"balance", plain["balance"]},
                      {"diagnosis", plain["diagnosis"]}}}};
  const auto report = report_of(job);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->ranks, 4);
  EXPECT_EQ(report->stage, contract::JobStage::kCompleted);
  EXPECT_THAT(explain_text(*report), HasSubstr("imbalance                  30.0%"));
  for (const char* bad : {"[]", "7", "{}", R"({"explain": 5})", R"({"jobUid": "u"})", R"({"kind": "Pod"})",
                          R"({"spec": {}, "status": {"diagnosis": {"losses": {"compute": "all"}}}})"}) {
    const auto refused = report_of(*base::parse_json(bad));
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_EQ(refused.error().code, base::ErrorCode::kInvalidInput) << bad;
  }
}

class ExplainRun : public ::testing::Test {
 protected:
  int run(const std::string& source, const std::string& html = "") {
    out.str("");
    err.str("");
    const Fetch fetch = [this](const std::string& host, std::uint16_t port, const std::string& path) {
      asked = host + " " + std::to_string(port) + " " + path;
      return answer;
    };
    return run_explain({nullptr, source, html}, files, fetch, out, err);
  }
  base::FakeFiles files;
  std::ostringstream out, err;
  std::string asked;
  base::Result<std::string> answer = base::dump_json(contract::to_json(sample()));
};

TEST_F(ExplainRun, prints_and_writes_the_page) {
  files.put("/r.json", base::dump_json(contract::to_json(sample())));
  EXPECT_EQ(run("/r.json"), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("4 ranks do the work of 2.50"));
  EXPECT_EQ(run("/r.json", "/page.html"), 0) << err.str();
  EXPECT_THAT(*files.read("/page.html", 1 << 22), HasSubstr("<!doctype html>"));
}

TEST_F(ExplainRun, asks_a_running_coordinator) {
  EXPECT_EQ(run("http://127.0.0.1:9400"), 0) << err.str();
  EXPECT_EQ(asked, "127.0.0.1 9400 /v1/report");
  EXPECT_EQ(run("http://[::1]:9400/"), 0);
  EXPECT_EQ(asked, "::1 9400 /v1/report");
  EXPECT_EQ(run("http://job-coordinator-0.ns:80/v1/report"), 0);
  EXPECT_EQ(asked, "job-coordinator-0.ns 80 /v1/report");
  answer = base::Error{base::ErrorCode::kUnavailable, "connection refused"};
  EXPECT_EQ(run("http://127.0.0.1:1"), 74);
  EXPECT_THAT(err.str(), HasSubstr("connection refused"));
}

TEST_F(ExplainRun, bad_input_is_told_and_has_its_code) {
  for (const char* url :
       {"http://", "http://:1", "http://h", "http://h:0", "http://h:99999", "http://h:x", "https://h:1"}) {
    EXPECT_EQ(run(url), 64) << url;
    EXPECT_THAT(err.str(), HasSubstr("evenkeel-trainer explain: ")) << url;
  }
  EXPECT_EQ(run("/missing.json"), 74);
  files.put("/bad.json", "{\"jobUid\": ");
  EXPECT_EQ(run("/bad.json"), 64);
  EXPECT_THAT(err.str(), HasSubstr("/bad.json"));
  files.put("/other.json", "{\"a\": 1}");
  EXPECT_EQ(run("/other.json"), 64);
  EXPECT_THAT(err.str(), HasSubstr("this is no report"));
}

TEST(ExplainCommandLine, wants_a_source) {
  const auto parse = [](std::vector<std::string> words) {
    CLI::App app{"test"};
    ExplainCommand chosen;
    add_explain_command(app, chosen);
    std::reverse(words.begin(), words.end());  // the library takes them from the end
    try {
      app.parse(words);
    } catch (const CLI::ParseError& error) {
      return std::string("refused");
    }
    return chosen.source + " " + chosen.html;
  };
  EXPECT_EQ(parse({"explain", "r.json", "--html", "p.html"}), "r.json p.html");
  EXPECT_EQ(parse({"explain", "http://127.0.0.1:1"}), "http://127.0.0.1:1 ");
  EXPECT_EQ(parse({"explain"}), "refused");
}

}  // namespace
}  // namespace evenkeel::trainer
