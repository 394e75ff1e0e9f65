#include <gtest/gtest.h>

#include <prometheus/metric_family.h>

#include <algorithm>

#include "base/clock_fake.h"
#include "base/metrics.h"
#include "contract/metrics.h"
#include "operator/runtime/job_metrics.h"
#include "operator/runtime/operator_metrics.h"

namespace evenkeel::oper {
namespace {

const Json kJob = *base::parse_json(
    R"({"metadata": {"namespace": "a", "name": "t", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
  "spec": {"workers": {"replicas": 4}, "balance": {"stragglerThreshold": 0.75}},
  "status": {"phase": "Running", "startTime": "2026-01-01T00:00:10Z",
    "workers": {"running": 4, "ready": 4}, "restarts": {"total": 2, "countedTowardsMax": 1},
    "progress": {"step": 50, "targetSteps": 200, "samplesPerSecond": 123.5},
    "time": {"productiveSeconds": 12.5, "unproductiveSeconds": {"imagePull": 3}},
    "balance": {"imbalanceRatio": 0.25, "rebalances": 2}, "diagnosis": {"verdict": "Straggler", "losses": {"imbalance": 0.25, "inputWait": 0.05},
      "remedies": [{"action": "gradients as 16 bit on the wire", "predictedGain": 0.9, "state": "Proposed"},
        {"action": "shares by speed, for rank 3", "predictedGain": 0.5, "measuredGain": 0.45, "state": "Applied"},
        {"action": "shares by speed, for rank 1", "predictedGain": 0.3, "measuredGain": 0.1, "state": "Reverted"},
        {"action": "batch x2: 64 -> 128 samples a step", "predictedGain": 0.2, "state": "Proposed"}]},
    "replicas": [{"rank": 0, "relativePerformance": 1.0}, {"rank": 3, "relativePerformance": 0.56}]}})");

std::string page_of(const std::vector<Json>& jobs) {
  return base::serialize_metrics(job_metric_families(jobs));
}
bool has(const std::string& page, const std::string& line) {
  return ("\n" + page).find("\n" + line + "\n") != std::string::npos;
}

TEST(JobMetrics, say_what_the_status_says) {
  const std::string page = page_of({kJob});
  const std::string labels = R"(namespace="a",trainingjob="t")";
  for (const std::string& line :
       {"evenkeel_job_status_phase{" + labels + ",phase=\"Running\"} 1",
        "evenkeel_job_status_phase{" + labels + ",phase=\"Failed\"} 0",
        "evenkeel_job_spec_replicas{" + labels + "} 4",
        "evenkeel_job_status_replicas{" + labels + ",state=\"ready\"} 4",
        "evenkeel_job_status_restarts{" + labels + "} 2", "evenkeel_job_progress_ratio{" + labels + "} 0.25",
        "evenkeel_job_imbalance_ratio{" + labels + ",dimension=\"busy_time\"} 0.25",
        "evenkeel_job_idle_ratio{" + labels + ",dimension=\"busy_time\"} 0.2",
        "evenkeel_job_rebalances{" + labels + "} 2",
        "evenkeel_job_remedy_gain_ratio{" + labels + ",action=\"shares\",kind=\"predicted\"} 0.5",
        "evenkeel_job_remedy_gain_ratio{" + labels + ",action=\"shares\",kind=\"measured\"} 0.45",
        "evenkeel_job_stragglers{" + labels + "} 1",
        "evenkeel_job_replica_relative_performance_ratio{" + labels + ",rank=\"3\"} 0.56",
        "evenkeel_job_diagnosis{" + labels + ",verdict=\"Straggler\"} 1",
        "evenkeel_job_step_time_share_ratio{" + labels + ",part=\"compute\"} 0.7",
        "evenkeel_job_productive_seconds_total{" + labels + "} 12.5",
        "evenkeel_job_unproductive_seconds_total{" + labels + ",cause=\"image_pull\"} 3",
        "evenkeel_job_unproductive_seconds_total{" + labels + ",cause=\"restart\"} 0"})
    EXPECT_TRUE(has(page, line)) << line << "\n" << page;
}

TEST(JobMetrics, what_has_not_happened_is_absent_and_nothing_outlives_its_object) {
  const std::string page = page_of({kJob});
  EXPECT_EQ(page.find("completion_timestamp"), std::string::npos);
  EXPECT_EQ(page.find("action=\"batch\""), std::string::npos) << "only proposed";
  EXPECT_TRUE(page_of({}).empty());
  const std::string fresh = page_of({*base::parse_json(R"({"metadata": {"namespace": "a", "name": "n"}})")});
  EXPECT_TRUE(has(fresh, R"(evenkeel_job_status_phase{namespace="a",trainingjob="n",phase="Pending"} 1)"))
      << fresh;
  EXPECT_EQ(fresh.find("imbalance"), std::string::npos);
}

TEST(JobMetrics, take_any_object_without_harm) {
  for (const char* text :
       {"{}", R"({"status": 5})",
        R"({"status": {"replicas": {"a": 1}, "workers": [], "progress": null, "diagnosis": {"losses": 3}}})",
        R"({"metadata": [], "status": {"replicas": [1, null, {"rank": "x", "relativePerformance": 0.5}]}})"})
    page_of({*base::parse_json(text)});
}

TEST(OperatorMetrics, every_counter_of_the_catalogue_with_closed_labels_is_born_at_zero) {
  base::FakeClock clock;
  OperatorMetrics metrics(clock, "h:443", 2);
  const std::string page = base::serialize_metrics(metrics.Collect());
  for (const contract::MetricInfo& info : contract::metric_catalogue()) {
    if (info.source != contract::MetricSource::kOperator || info.type == contract::MetricType::kGauge)
      continue;
    const bool closed = std::all_of(info.labels.begin(), info.labels.end(),
                                    [](const auto& label) { return !label.values.empty(); });
    if (!closed) continue;
    EXPECT_NE(
        page.find("\n" + info.name + (info.type == contract::MetricType::kHistogram ? "_bucket{" : "{")),
        std::string::npos)
        << info.name;
  }
  EXPECT_TRUE(has(page, R"(controller_runtime_reconcile_total{controller="trainingjob",result="error"} 0)"))
      << page;
  metrics.namespace_seen("a");
  EXPECT_TRUE(has(base::serialize_metrics(metrics.Collect()),
                  R"(evenkeel_operator_jobs_finished_total{namespace="a",result="failed"} 0)"));
  EXPECT_EQ(page.find("leader_election_master_status"), std::string::npos);
}

TEST(OperatorMetrics, count_what_happens) {
  base::FakeClock clock;
  OperatorMetrics metrics(clock, "h:443", 2);
  metrics.reconcile_started();
  metrics.reconcile_finished("requeue_after", 0.01);
  metrics.request_done({"POST", "POST", "201", 0.1, 0, 10, 20});
  metrics.job_finished("a", "succeeded");
  metrics.watch_restarted("pods", "expired");
  const std::string page = base::serialize_metrics(metrics.Collect());
  EXPECT_TRUE(
      has(page, R"(controller_runtime_reconcile_total{controller="trainingjob",result="requeue_after"} 1)"))
      << page;
  EXPECT_TRUE(has(page, R"(rest_client_requests_total{code="201",host="h:443",method="POST"} 1)")) << page;
  EXPECT_TRUE(has(page, R"(evenkeel_operator_jobs_finished_total{namespace="a",result="succeeded"} 1)"));
  EXPECT_TRUE(has(page, R"(evenkeel_operator_watch_restarts_total{reason="expired",resource="pods"} 1)"));
  EXPECT_TRUE(has(page, R"(controller_runtime_active_workers{controller="trainingjob"} 0)"));
}

}  // namespace
}  // namespace evenkeel::oper
