#include "operator/act/report_poller.h"

#include <gtest/gtest.h>

#include "base/clock_fake.h"

namespace evenkeel::oper {
namespace {

using namespace std::chrono_literals;

class ReportPollerTest : public ::testing::Test {
 protected:
  ReportPollerTest() {
    report.job_uid = "job-1";
    report.attempt = 1;
    report.ranks = 4;
    poller.track("job-1", "a/t", {"10.0.0.1", 9400, 1});
  }
  base::Result<base::HttpResponse> answer(const ReportTarget&) {
    ++asked;
    if (body) return base::HttpResponse{200, "application/json", *body};
    return base::HttpResponse{200, "application/json", base::dump_json(contract::to_json(report))};
  }
  int round() {
    clock.advance(1500ms);
    return poller.poll_due();
  }

  base::FakeClock clock;
  contract::JobReport report;
  std::optional<std::string> body;
  int asked = 0;
  std::vector<std::string> news;
  ReportPoller poller{clock, [this](const ReportTarget& target) { return answer(target); },
                      [this](const std::string& key) { news.push_back(key); }};
};

TEST_F(ReportPollerTest, tells_the_first_report_and_what_decides_at_once_but_numbers_late) {
  round();
  EXPECT_EQ(news.size(), 1u);
  report.progress.loss = 2.5;
  round();
  EXPECT_EQ(news.size(), 1u);
  report.joined = 4;
  report.stage = contract::JobStage::kRunning;
  round();
  EXPECT_EQ(news.size(), 2u);
  EXPECT_EQ(poller.report("job-1", 1)->joined, 4);
  for (int i = 0; i < 20; ++i) round();
  EXPECT_EQ(news.size(), 3u);
}

TEST_F(ReportPollerTest, asks_each_job_once_a_period) {
  EXPECT_EQ(poller.poll_due(), 1);
  EXPECT_EQ(poller.poll_due(), 0);
  EXPECT_EQ(round(), 1);
}

TEST_F(ReportPollerTest, another_jobs_or_attempts_report_is_dropped) {
  report.job_uid = "job-2";
  round();
  report.job_uid = "job-1";
  report.attempt = 2;
  round();
  EXPECT_TRUE(news.empty());
  EXPECT_FALSE(poller.report("job-1", 1));
  EXPECT_FALSE(poller.report("job-1", 2));
}

TEST_F(ReportPollerTest, garbage_is_dropped) {
  for (const std::string& text : {std::string("<html>"), std::string("[]"), std::string("{\"jobUid\": 5}"),
                                  std::string(300, '['), std::string("{}")}) {
    body = text;
    round();
  }
  EXPECT_EQ(asked, 5);
  EXPECT_TRUE(news.empty());
}

TEST_F(ReportPollerTest, a_new_attempt_forgets_the_old_report) {
  round();
  ASSERT_TRUE(poller.report("job-1", 1));
  poller.track("job-1", "a/t", {"10.0.0.2", 9400, 2});
  EXPECT_FALSE(poller.report("job-1", 1));
}

TEST_F(ReportPollerTest, a_paused_job_keeps_its_last_report_and_is_not_asked) {
  round();
  poller.pause("job-1");
  EXPECT_EQ(round(), 0);
  EXPECT_TRUE(poller.report("job-1", 1));
  poller.forget("job-1");
  EXPECT_FALSE(poller.report("job-1", 1));
}

}  // namespace
}  // namespace evenkeel::oper
