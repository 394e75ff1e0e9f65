#include "contract/report.h"

#include <gtest/gtest.h>

namespace evenkeel::contract {
namespace {

JobReport sample(int ranks) {
  JobReport report;
  report.job_uid = "6f1c2f64-aaaa-bbbb-cccc-0123456789ab";
  report.attempt = 2;
  report.stage = JobStage::kCompleted;
  report.ranks = report.joined = ranks;
  report.progress = {2, 470, 470, 120000, 0.31, 0.4, 0.87, 5000.0, 0.0};
  report.balance.imbalance_ratio = 0.5;
  report.balance.slowest_rank = ranks - 1;
  report.diagnosis = {
      "Straggler", "rank 3 runs at 0.56 of the others", {0.5, std::nullopt, 0.01, 0.3, 0.19}, {}};
  report.diagnosis.remedies = {{"new shares by speed", 0.35, 0.31, RemedyState::kApplied, std::nullopt},
                               {"batch x4", 0.2, std::nullopt, RemedyState::kNotAllowed, 0.1}};
  report.balance.rebalances = 1;
  report.balance.mode = "Rebalance";
  report.balance.balanced = false;
  report.balance.reason = "groups of 16 samples";
  report.balance.loss_left = 0.125;
  report.waterfall = WaterfallReport{
      ranks, 0.16, 2.5, {{"wait", 0.036, 0.9}, {"input", 0.002, std::nullopt}}, -0.001, "fitted"};
  report.productive_seconds = {{"productive", 60.5}, {"rendezvous", 0.4}};
  for (int rank = 0; rank < ranks; ++rank) {
    ReplicaReport replica;
    replica.rank = rank;
    replica.pod = "fashion-mnist-worker-" + std::to_string(rank) + "-1";
    replica.node = "node-a";
    replica.state = "done";
    replica.relative_performance = 0.5;
    replica.consumed = 30000;
    report.replicas.push_back(replica);
  }
  return report;
}

TEST(Report, is_read_back_as_it_was_written) {
  JobReport report = sample(4);
  report.failure = LastFailure{2, 65, "label 7 of 5 classes"};
  const Json json = to_json(report);
  const auto back = decode_report(*base::parse_json(base::dump_json(json)));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(to_json(*back), json);
}

JobReport with_history(int ranks, std::size_t points) {
  JobReport report = sample(ranks);
  for (std::size_t i = 0; i < points; ++i) {
    HistoryPoint point{static_cast<std::int64_t>(10 * i + 10), 10, 0.1, {}};
    for (int rank = 0; rank < ranks; ++rank) point.ranks.push_back({rank, 64, 0.0912345, 0.002});
    report.history.push_back(point);
  }
  return report;
}

TEST(Report, history_is_read_back_and_the_longest_one_fits) {
  for (int ranks : {1, 16, 160}) {
    const std::size_t points =
        std::min(kMaxHistoryPoints, kMaxHistoryEntries / static_cast<std::size_t>(ranks));
    const Json json = to_json(with_history(ranks, points));
    const std::string text = base::dump_json(json);
    EXPECT_LT(text.size(), kMaxReportBytes);
    const auto back = decode_report(*base::parse_json(text));
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(to_json(*back), json);
  }
}

TEST(Report, a_history_that_is_too_long_or_of_other_things_is_refused) {
  EXPECT_FALSE(decode_report(to_json(with_history(1, kMaxHistoryPoints + 1))).ok());
  EXPECT_FALSE(decode_report(to_json(with_history(100, 100))).ok());
  for (const char* ranks : {"5", "[5]", "[[1,2,3]]", "[[1,2,3,\"x\"]]", "[[-1,2,3,4]]", "[[1e9,2,3,4]]"}) {
    Json json = to_json(with_history(2, 2));
    json["history"][0]["ranks"] = *base::parse_json(ranks);
    EXPECT_FALSE(decode_report(json).ok()) << ranks;
  }
}

TEST(Report, termination_message_keeps_progress_and_the_slowest_rank_at_any_size) {
  for (int ranks : {1, 4, 64, 1000}) {
    JobReport report = with_history(ranks, 3);
    report.message = std::string(5000, 'x');
    const std::string text = termination_message(report);
    EXPECT_LE(text.size(), kMaxTerminationMessageBytes);
    const auto back = decode_report(*base::parse_json(text));
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(back->progress.samples, 120000);
    ASSERT_FALSE(back->replicas.empty());
    EXPECT_EQ(back->replicas.back().rank, ranks - 1);
  }
}

TEST(Report, a_report_with_unknown_or_wrong_members_is_refused) {
  Json json = to_json(sample(2));
  json["attempt"] = "two";
  EXPECT_FALSE(decode_report(json).ok());
  EXPECT_FALSE(decode_report(Json()).ok());
  EXPECT_FALSE(decode_report(Json::object()).ok());
}

TEST(Report, any_text_is_accepted_as_a_workers_last_words) {
  EXPECT_EQ(parse_worker_termination(termination_message(WorkerTermination{"label 7", 65, 3})).exit_code, 65);
  EXPECT_EQ(parse_worker_termination("plain words").reason, "plain words");
  const std::string long_text(4096, '\x01');
  EXPECT_LE(parse_worker_termination(long_text).reason.size(), 1024u);
  const auto broken = parse_worker_termination("\xff\xfe");
  EXPECT_FALSE(broken.reason.empty());
  EXPECT_NO_THROW(Json(broken.reason).dump());
}

}  // namespace
}  // namespace evenkeel::contract
