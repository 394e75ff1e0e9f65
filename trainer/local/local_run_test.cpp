// The way from a manifest to children and back, with shell scripts in the place of the trainer. The real one
// is tested as processes beside trainer/app.
#include "trainer/local/local_run.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "base/files.h"
#include "base/json.h"
#include "trainer/local/folder_lock.h"
#include "trainer/local/local_manifest.h"
#include "trainer/local/local_status.h"
#include "trainer/local/local_table.h"

namespace evenkeel::trainer {
namespace {

constexpr char kManifest[] = R"(
apiVersion: training.evenkeel.dev/v1alpha1
kind: TrainingJob
metadata: {name: demo}
spec:
  workers:
    replicas: 2
    resources: {limits: {cpu: 400m}}
    overrides: [{replicas: [1], resources: {limits: {cpu: 200m}}}]
  model: {preset: mlp}
  dataset: {format: idx, path: /data}
  training: {epochs: 1, batchSize: {global: 8}}
  restart: {maxRestarts: 1}
)";

class LocalRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/evenkeel-local-test-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    folder_ = path;
    ::setenv("TMPDIR", path, 1);
    write("job.yaml", kManifest);
    options_.manifest = folder_ + "/job.yaml";
    options_.report = folder_ + "/report.json";
    environment_.out = &out_;
    environment_.cgroup_root = folder_;  // none there: limits are not applied, and it says so
  }
  void TearDown() override {
    ::unsetenv("TMPDIR");
    (void)base::real_files().remove_all(folder_);
  }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  int run_script(const std::string& body) {
    const std::string path = write("trainer", "#!/bin/sh\n" + body);
    ::chmod(path.c_str(), 0755);
    environment_.program = path;
    return run_local(options_, environment_);
  }
  base::Json report() {
    return base::parse_json(*base::real_files().read(options_.report, 1u << 20)).value();
  }

  std::string folder_;
  std::ostringstream out_;
  LocalOptions options_;
  LocalEnvironment environment_;
};

constexpr char kEnd[] = R"(
end() { printf '%s' "$1" > "$EVENKEEL_TERMINATION_LOG"; exit $2; }
)";

TEST_F(LocalRunTest, a_finished_job_is_reported_with_its_sentence) {
  const int code = run_script(std::string(kEnd) + R"(
[ "$1" = coordinator ] || exit 0
test -s "$EVENKEEL_CONFIG" && test -s "$EVENKEEL_KEY_FILE" || exit 1
end '{"jobUid": "u", "attempt": 1, "stage": "Completed", "ranks": 2, "message": "completed",
      "progress": {"step": 3, "targetSteps": 3, "samples": 24, "accuracy": 0.9},
      "diagnosis": {"verdict": "Straggler", "message": "rank 1 runs at 0.50 of the others"}}' 0
)");
  EXPECT_EQ(code, 0) << out_.str();
  EXPECT_NE(out_.str().find("CPU limits are not applied"), std::string::npos);
  EXPECT_NE(out_.str().find("Straggler: rank 1 runs at 0.50 of the others"), std::string::npos) << out_.str();
  const base::Json json = report();
  EXPECT_EQ(base::string_at(json, "sentence"), "rank 1 runs at 0.50 of the others");
  EXPECT_EQ(base::string_at(base::at_path(json, {"job", "status"}), "phase"), "Succeeded");
  EXPECT_EQ(base::double_at(base::at_path(json, {"job", "status", "progress"}), "accuracy"), 0.9);
  EXPECT_EQ(json["cpu"].size(), 2u);
  // Key and configuration are gone with the run.
  for (const base::DirEntry& entry : *base::real_files().list(folder_))
    EXPECT_FALSE(entry.is_directory) << entry.name;
}

TEST_F(LocalRunTest, a_code_that_cannot_get_better_fails_the_job_with_the_workers_reason) {
  const int code = run_script(std::string(kEnd) + R"(
[ "$1" = coordinator ] && exec sleep 60
[ "$EVENKEEL_RANK" = 1 ] || exec sleep 60
end '{"reason": "train-labels: label 12 at record 3", "exitCode": 65, "step": 0}' 65
)");
  EXPECT_EQ(code, 65);
  EXPECT_NE(out_.str().find("label 12 at record 3"), std::string::npos) << out_.str();
  EXPECT_EQ(out_.str().find("starts again"), std::string::npos);
}

TEST_F(LocalRunTest, a_lost_attempt_is_started_again_until_the_limit) {
  const int code = run_script("[ \"$1\" = coordinator ] || sleep 1\nexit 75\n");
  EXPECT_EQ(code, 75);
  EXPECT_NE(out_.str().find("attempt 1 ended with exit code 75"), std::string::npos) << out_.str();
  EXPECT_NE(out_.str().find("maxRestarts (1) is reached"), std::string::npos) << out_.str();
  EXPECT_EQ(base::int_at(base::at_path(report(), {"job", "status", "restarts"}), "total"), 1);
}

TEST_F(LocalRunTest, a_bad_manifest_is_64_and_names_the_field) {
  write("job.yaml", std::string(kManifest) + "  balnce: {}\n");
  EXPECT_EQ(run_script("exit 0\n"), 64);
  EXPECT_NE(out_.str().find("balnce"), std::string::npos) << out_.str();
}

// A port that is taken, say: the second time it is an incident of its own, whoever else is still to join.
TEST_F(LocalRunTest, a_worker_that_never_gets_to_its_feet_ends_the_job_with_its_reason) {
  const int code = run_script(std::string(kEnd) + R"(
[ "$1" = coordinator ] && exec sleep 60
[ "$EVENKEEL_RANK" = 1 ] || exec sleep 60
end '{"reason": "port 9101 is taken", "exitCode": 75, "step": 0}' 75
)");
  EXPECT_EQ(code, 75);
  EXPECT_NE(out_.str().find("worker-1 ended with 75 (port 9101 is taken); another one takes its place"),
            std::string::npos)
      << out_.str();
  EXPECT_NE(out_.str().find("maxRestarts (1) is reached; worker-1 ended with 75: port 9101 is taken"),
            std::string::npos)
      << out_.str();
}

TEST_F(LocalRunTest, two_runs_do_not_share_a_checkpoint_folder_and_a_second_run_says_where_it_goes_on) {
  const std::string path = folder_ + "/checkpoints";
  write("job.yaml", std::string(kManifest) + "  checkpoint: {path: " + path + "}\n");
  const std::string script = std::string(kEnd) + R"(
[ "$1" = coordinator ] || exit 0
end '{"jobUid": "u", "attempt": 1, "stage": "Completed", "ranks": 2, "message": "completed"}' 0
)";
  {
    const auto other = FolderLock::take(path);
    ASSERT_TRUE(other.ok());
    EXPECT_EQ(run_script(script), 75);
    EXPECT_NE(out_.str().find("another run keeps its checkpoints in " + path), std::string::npos) << out_.str();
  }
  EXPECT_EQ(run_script(script), 0) << out_.str();
  EXPECT_EQ(out_.str().find("there are checkpoints"), std::string::npos);
  ASSERT_TRUE(base::real_files().make_directories(path + "/step-000000012").ok());
  EXPECT_EQ(run_script(script), 0);
  EXPECT_NE(out_.str().find("the newest is step-000000012"), std::string::npos) << out_.str();
}

TEST_F(LocalRunTest, a_missing_program_is_an_error_and_no_hang) {
  environment_.program = folder_ + "/none";
  EXPECT_NE(run_local(options_, environment_), 0);
}

TEST(LocalManifest, options_are_written_over_and_limits_follow_the_overrides) {
  base::Json manifest =
      base::parse_json(R"({"apiVersion": "training.evenkeel.dev/v1alpha1", "kind": "TrainingJob",
    "metadata": {"name": "demo"}, "spec": {
    "workers": {"replicas": 4, "resources": {"limits": {"cpu": "400m"}}, "overrides": [{"replicas": [1, 3], "resources": {"limits": {"cpu": "200m"}}}]},
    "model": {"preset": "mlp"}, "dataset": {"format": "idx", "path": "/a"}, "training": {"epochs": 3, "batchSize": {"perReplica": 8}}}})")
          .value();
  LocalOptions options;
  options.workers = 2;
  options.steps = 7;
  options.global_batch = 20;
  options.data = "/b";
  const auto job = local_job(manifest, options);
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(job->spec.workers.replicas, 2);
  EXPECT_EQ(*job->spec.training.steps, 7);
  EXPECT_FALSE(job->spec.training.epochs);
  EXPECT_EQ(job->spec.global_batch(), 20);
  EXPECT_EQ(job->spec.dataset.path, "/b");
  EXPECT_DOUBLE_EQ(cpu_limit_of(job->spec, 0), 0.4);
  EXPECT_DOUBLE_EQ(cpu_limit_of(job->spec, 1), 0.2);
}

TEST(LocalTable, shows_each_rank_and_the_verdict_and_redraws_in_place) {
  contract::JobReport report;
  report.stage = contract::JobStage::kRunning;
  report.progress.step = 12;
  report.progress.target_steps = 40;
  report.diagnosis = {"Straggler", "rank 1 runs at 0.56 of the others", {}};
  for (int r = 0; r < 2; ++r) {
    contract::ReplicaReport replica;
    replica.rank = r;
    replica.state = "stepping";
    replica.busy_seconds = r == 0 ? 0.010 : 0.018;
    replica.consumed = 96;
    report.replicas.push_back(replica);
  }
  const std::string text = table_text(report, 61);
  EXPECT_NE(text.find("step 12/40"), std::string::npos) << text;
  EXPECT_NE(text.find("8.00"), std::string::npos) << text;  // rank 0 waits 8 ms for rank 1
  EXPECT_NE(text.find("rank 1 runs at 0.56"), std::string::npos);
  Redraw redraw;
  EXPECT_EQ(redraw.frame("a\nb\n"), "a\nb\n");
  EXPECT_EQ(redraw.frame("c\n"), "\033[2A\r\033[Jc\n");
}

}  // namespace
}  // namespace evenkeel::trainer
