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
  report.diagnosis = {"Straggler", "rank 3 runs at 0.56 of the others", {0.5, std::nullopt, 0.01, 0.3, 0.19}};
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

TEST(Report, termination_message_keeps_progress_and_the_slowest_rank_at_any_size) {
  for (int ranks : {1, 4, 64, 1000}) {
    JobReport report = sample(ranks);
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
