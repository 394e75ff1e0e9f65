// Pods of several ranks as real processes: one `launch` for each pod, its ranks below it.
#include <dirent.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>
#include <sstream>

#include "base/http.h"
#include "trainer/app/processes_fixture.h"

namespace evenkeel::trainer {
namespace {

using namespace testing;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Four groups of 16 a step, two steps an epoch.
constexpr int kSamples = 128, kBatch = 64;

Json two_ranks_each(const Folder& folder, int pods, int epochs, int every_steps = 50) {
  Json spec = spec_json(folder.path, pods, epochs, kBatch, every_steps);
  spec["workers"]["devicesPerReplica"] = 2;
  spec["training"]["reproducible"] = true;  // the same bits, whoever dies
  spec["restart"]["maxRestarts"] = 10;
  return spec;
}

// Long enough for somebody to die and come back.
const std::map<std::string, std::string> kSlowSteps{{contract::kEnvInject, "step=0.008"}};

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// 'R', 'S', ... of a process; 'X': it is gone. And its parent.
char state_of(int pid) {
  const std::string stat = text_of("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t bracket = stat.rfind(')');
  return bracket == std::string::npos ? 'X' : stat[bracket + 2];
}
int parent_of(int pid) {
  const std::string stat = text_of("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t bracket = stat.rfind(')');
  return bracket == std::string::npos ? 0 : std::atoi(stat.c_str() + bracket + 4);
}
bool is_gone(int pid) {
  const char state = state_of(pid);
  return state == 'X' || state == 'Z';
}

// The process of `rank` below this launcher; 0: there is none now.
int pid_of(int rank, const base::Subprocess& launcher) {
  const std::string wanted = "EVENKEEL_RANK=" + std::to_string(rank);
  int found = 0;
  DIR* directory = ::opendir("/proc");
  while (const dirent* entry = ::readdir(directory)) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
    const int pid = std::atoi(entry->d_name);
    if (parent_of(pid) != launcher.pid() || is_gone(pid)) continue;
    std::istringstream environment(text_of("/proc/" + std::to_string(pid) + "/environ"));
    for (std::string variable; std::getline(environment, variable, '\0');) {
      if (variable == wanted) found = pid;
    }
  }
  ::closedir(directory);
  return found;
}

template <class Condition>
void wait_until(const Condition& holds, const std::string& what) {
  const auto deadline = base::real_clock().now() + seconds(60);
  while (!holds()) {
    ASSERT_LT(base::real_clock().now(), deadline) << what;
    base::real_clock().sleep_for(milliseconds(10));
  }
}

// How often a rank has said that it is ready: once for each group that it was in.
int groups_of(int rank, const std::string& log, int restarts) {
  std::istringstream lines(log);
  int count = 0, process = -1;
  for (std::string line; std::getline(lines, line);) {
    const auto json = base::parse_json(line);
    if (!json.ok() || base::int_at(*json, "rank", -1) != rank) continue;
    const std::string message = base::string_at(*json, "message");
    if (message == "rank started") process = static_cast<int>(base::int_at(*json, "restarts"));
    count += message == "ready" && process == restarts ? 1 : 0;
  }
  return count;
}

int count_in(const std::string& text, const std::string& word) {
  int count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

contract::JobReport last_report(const Folder& folder) {
  const auto text = base::real_files().read(folder.path + "/termination-coordinator", 1 << 16);
  EXPECT_TRUE(text.ok());
  return contract::decode_report(*base::parse_json(*text)).value();
}

std::int64_t consumed(const contract::JobReport& report) {
  std::int64_t all = 0;
  for (const contract::ReplicaReport& replica : report.replicas) all += replica.consumed;
  return all;
}

// The weights of the job that nobody disturbs, with one rank in each of four pods.
std::string undisturbed_weights(int epochs) {
  Folder folder;
  write_row_set(folder.path + "/data", kSamples, 4);
  Json spec = two_ranks_each(folder, 4, epochs);
  spec["workers"]["devicesPerReplica"] = 1;
  Job job(folder, spec, 1);
  for (std::size_t pod = 0; pod < 4; ++pod) EXPECT_EQ(job.exit_of(pod), 0) << job.log(static_cast<int>(pod));
  EXPECT_EQ(job.coordinator_exit(), 0);
  return bytes_of_newest(folder, contract::kWeightsFile);
}

TEST(Launch, two_pods_of_two_ranks_train_to_the_weights_of_four_pods_of_one) {
  Folder folder;
  write_row_set(folder.path + "/data", kSamples, 4);
  Job job(folder, two_ranks_each(folder, 2, 30), 1);
  for (std::size_t pod = 0; pod < 2; ++pod) EXPECT_EQ(job.exit_of(pod), 0) << job.log(static_cast<int>(pod));
  EXPECT_EQ(job.coordinator_exit(), 0);
  const contract::JobReport report = last_report(folder);
  EXPECT_EQ(report.ranks, 4);
  EXPECT_EQ(report.progress.step, 60);
  EXPECT_EQ(consumed(report), 30 * kSamples);
  EXPECT_EQ(bytes_of_newest(folder, contract::kWeightsFile), undisturbed_weights(30));
  // What the ranks say reaches the pod's log line by line.
  for (int pod = 0; pod < 2; ++pod) {
    std::istringstream lines(job.log(pod));
    std::set<std::int64_t> heard;
    for (std::string line; std::getline(lines, line);) {
      const auto json = base::parse_json(line);
      ASSERT_TRUE(json.ok()) << line;
      if (base::string_at(*json, "message") == "ready") heard.insert(base::int_at(*json, "rank", -1));
    }
    EXPECT_EQ(heard, (std::set<std::int64_t>{2 * pod, 2 * pod + 1}));
  }
}

TEST(Launch, a_killed_rank_starts_again_in_its_pod_and_every_sample_counts_once) {
  Folder folder;
  write_row_set(folder.path + "/data", kSamples, 4);
  Job job(folder, two_ranks_each(folder, 2, 300), 1, kSlowSteps);
  wait_for_checkpoint(folder, 50);
  const int before = pid_of(3, job.workers[1]);
  ASSERT_GT(before, 0);
  ASSERT_EQ(::kill(before, SIGKILL), 0);
  wait_until([&] { return groups_of(3, job.log(1), 1) > 0; }, "rank 3 came back");
  EXPECT_NE(pid_of(3, job.workers[1]), before);
  EXPECT_GT(pid_of(2, job.workers[1]), 0) << "its neighbour in the pod goes on";
  for (std::size_t pod = 0; pod < 2; ++pod) EXPECT_EQ(job.exit_of(pod), 0) << job.log(static_cast<int>(pod));
  EXPECT_EQ(job.coordinator_exit(), 0);
  EXPECT_NE(job.log(1).find("a rank is started again in its pod"), std::string::npos);
  const contract::JobReport report = last_report(folder);
  EXPECT_EQ(report.attempt, 1u);
  EXPECT_EQ(report.progress.step, 600);
  EXPECT_EQ(consumed(report), 300 * kSamples);
  EXPECT_EQ(bytes_of_newest(folder, contract::kWeightsFile), undisturbed_weights(300));
}

TEST(Launch, a_killed_launcher_takes_its_ranks_with_it_and_the_next_pod_takes_their_places) {
  Folder folder;
  write_row_set(folder.path + "/data", kSamples, 4);
  Job job(folder, two_ranks_each(folder, 2, 300), 1, kSlowSteps);
  wait_for_checkpoint(folder, 50);
  const int ranks[] = {pid_of(2, job.workers[1]), pid_of(3, job.workers[1])};
  for (const int pid : ranks) ASSERT_GT(pid, 0);
  ASSERT_EQ(::kill(job.workers[1].pid(), SIGKILL), 0);
  EXPECT_EQ(job.exit_of(1), 128 + SIGKILL);
  wait_until([&] { return is_gone(ranks[0]) && is_gone(ranks[1]); }, "ranks outlive their launcher");
  job.start(1, 2);
  wait_until([&] { return groups_of(2, job.log(1), 0) > 1 && groups_of(3, job.log(1), 0) > 1; }, "the next pod's ranks joined");
  for (std::size_t pod = 0; pod < 2; ++pod) EXPECT_EQ(job.exit_of(pod), 0) << job.log(static_cast<int>(pod));
  EXPECT_EQ(job.coordinator_exit(), 0);
  const contract::JobReport report = last_report(folder);
  EXPECT_EQ(report.attempt, 1u);
  EXPECT_EQ(consumed(report), 300 * kSamples);
  EXPECT_EQ(bytes_of_newest(folder, contract::kWeightsFile), undisturbed_weights(300));
}

TEST(Launch, sigterm_reaches_all_ranks_and_they_make_a_checkpoint_and_end_with_143) {
  Folder folder;
  write_row_set(folder.path + "/data", kSamples, 4);
  Job job(folder, two_ranks_each(folder, 2, 100000, 1000000), 1);
  wait_until([&] { return job.log(0).find("\"step\":50,") != std::string::npos; }, "step 50");
  for (auto& launcher : job.workers) launcher.signal(SIGTERM);
  for (std::size_t pod = 0; pod < 2; ++pod) EXPECT_EQ(job.exit_of(pod), 143) << job.log(static_cast<int>(pod));
  EXPECT_GE(newest_step(folder), 50);
  (void)job.coordinator_exit();
  EXPECT_EQ(count_in(job.log(0), "\"message\":\"rank ended\""), 2);
  EXPECT_EQ(contract::parse_worker_termination(job.termination(1)).reason.rfind("rank 2: ", 0), 0u) << job.termination(1);
}

// Every family once with its type, every series once, every sample below its family.
void expect_readable(const std::string& page) {
  std::set<std::string> families, series;
  std::string family;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(families.insert(family).second) << line;
    } else if (!line.starts_with('#')) {
      EXPECT_EQ(line.rfind(family, 0), 0u) << line << " below " << family;
      EXPECT_TRUE(series.insert(line.substr(0, line.rfind(' '))).second) << line;
    }
  }
}

TEST(Launch, the_pods_page_is_that_of_all_its_ranks) {
  Folder folder;
  write_row_set(folder.path + "/data", kSamples, 4);
  Job job(folder, two_ranks_each(folder, 2, 100000, 1000000), 1, kSlowSteps);
  const auto ask = [&](const char* path) {
    return base::http_get("127.0.0.1", static_cast<std::uint16_t>(job.metrics_port(1)), path, seconds(5), 1 << 20);
  };
  wait_until([&] { return job.log(1).find("\"step\":1,") != std::string::npos; }, "the first step");
  const auto ready = ask("/readyz");
  ASSERT_TRUE(ready.ok()) << ready.error().message;
  EXPECT_EQ(ready->status, 200);
  EXPECT_EQ(ask("/healthz")->status, 200);
  const auto page = ask("/metrics");
  ASSERT_TRUE(page.ok()) << page.error().message;
  expect_readable(page->body);
  for (const char* series : {"evenkeel_replica_steps_total{rank=\"2\",trainingjob=\"job\"} ",
                             "evenkeel_replica_steps_total{rank=\"3\",trainingjob=\"job\"} ",
                             "evenkeel_replica_restarts_total{rank=\"3\",trainingjob=\"job\"} 0",
                             "process_cpu_seconds_total{rank=\"2\"} ", "process_cpu_seconds_total{rank=\"3\"} "})
    EXPECT_NE(page->body.find(series), std::string::npos) << series << "\n" << page->body;
  EXPECT_EQ(page->body.find("rank=\"1\""), std::string::npos) << "that one is in the other pod";
  // One that stands still is missing, and keeps nobody from being heard.
  const int held = pid_of(2, job.workers[1]);
  ASSERT_EQ(::kill(held, SIGSTOP), 0);
  const auto part = ask("/metrics");
  ::kill(held, SIGCONT);
  ASSERT_TRUE(part.ok()) << part.error().message;
  expect_readable(part->body);
  EXPECT_EQ(part->body.find("rank=\"2\""), std::string::npos);
  EXPECT_NE(part->body.find("rank=\"3\""), std::string::npos);
}

TEST(Launch, a_rank_that_dies_again_and_again_ends_its_pod_and_is_named) {
  Folder folder;
  write_row_set(folder.path + "/data", kSamples, 4);
  Job job(folder, two_ranks_each(folder, 2, 100000, 1000000), 1);
  wait_until([&] { return job.log(1).find("\"step\":1,") != std::string::npos; }, "the first step");
  int last = 0;
  for (int death = 0; death < 4; ++death) {
    int pid = 0;
    wait_until([&] { return (pid = pid_of(3, job.workers[1])) > 0 && pid != last; }, "rank 3 was started again");
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    last = pid;
  }
  EXPECT_EQ(job.exit_of(1), 128 + SIGKILL) << job.log(1);
  const std::string reason = contract::parse_worker_termination(job.termination(1)).reason;
  EXPECT_EQ(reason, "rank 3: ended by SIGKILL (started again in place 3 times before)");
  EXPECT_EQ(job.workers[0].exit_code(), std::nullopt) << "the other pod goes on";
}

TEST(Launch, what_no_repetition_mends_ends_the_pod_at_once_with_its_code) {
  Folder folder;  // without data
  Job job(folder, two_ranks_each(folder, 1, 1), 1);
  EXPECT_EQ(job.exit_of(0), 65) << job.log(0);
  EXPECT_EQ(job.log(0).find("started again"), std::string::npos);
  EXPECT_EQ(contract::parse_worker_termination(job.termination(0)).reason.rfind("rank 0: ", 0), 0u)
      << job.termination(0);
}

}  // namespace
}  // namespace evenkeel::trainer
