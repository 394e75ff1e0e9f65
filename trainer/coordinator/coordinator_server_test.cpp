// The coordinator and its clients over real sockets, workers as threads.
#include "trainer/coordinator/coordinator_server.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <future>
#include <thread>

#include "base/files.h"
#include "base/http.h"
#include "contract/exit_codes.h"
#include "contract/report.h"
#include "trainer/coordinator/coordination_fixture.h"
#include "trainer/coordinator/member_client.h"

namespace evenkeel::trainer {
namespace {

using base::ErrorCode;
constexpr char kKey[] = "0123456789abcdef0123456789abcdef";

base::MonotonicTime in(double seconds) {
  return base::real_clock().now() + base::from_seconds(seconds);
}

// A coordinator in a thread of its own, listening on free ports.
class RunningCoordinator {
 public:
  explicit RunningCoordinator(contract::TrainerConfig config) {
    options_.config = std::move(config);
    options_.key = kKey;
    options_.bind_address = "127.0.0.1";
    options_.stop = &stop_;
    options_.termination_log = "/tmp/evenkeel_coordinator_test." + std::to_string(::getpid());
    std::promise<void> listening;
    options_.on_listening = [&](std::uint16_t control, std::uint16_t metrics) {
      control_port = control;
      metrics_port = metrics;
      listening.set_value();
    };
    exit_code_ = std::async(std::launch::async, [this] { return run_coordinator(options_); });
    listening.get_future().wait();
  }
  ~RunningCoordinator() {
    stop_.wake();
    if (exit_code_.valid()) exit_code_.wait();
    (void)base::real_files().remove_all(options_.termination_log);
  }
  void stop() { stop_.wake(); }
  int exit_code() { return exit_code_.get(); }
  contract::JobReport last_report() {
    const auto text =
        base::real_files().read(options_.termination_log, contract::kMaxTerminationMessageBytes);
    return contract::decode_report(base::parse_json(*text).value()).value();
  }
  contract::JobReport report() {
    const auto answer = base::http_get("127.0.0.1", metrics_port, contract::kReportPath,
                                       std::chrono::seconds(5), contract::kMaxReportBytes);
    EXPECT_TRUE(answer.ok());
    return contract::decode_report(base::parse_json(answer->body).value()).value();
  }
  MemberOptions member_options(int rank, const std::string& key = kKey) {
    MemberOptions options;
    options.coordinator = {"127.0.0.1", control_port};
    options.key = key;
    options.hello = test_hello(options_.config, rank);
    options.failure_detection = std::chrono::seconds(options_.config.spec.restart.failure_detection_seconds);
    return options;
  }

  std::uint16_t control_port = 0, metrics_port = 0;

 private:
  base::Waker stop_;
  CoordinatorOptions options_;
  std::future<int> exit_code_;
};

// What a worker does, without the work. The exit code it would end with.
struct FakeWorker {
  int rank = 0;
  std::int64_t samples = 100;
  std::int64_t die_at = 0;   // closes without a word instead of committing this step
  std::int64_t fail_at = 0;  // sends Failure{65}
  const base::Waker* stop_signal = nullptr;
  std::function<void(std::int64_t)> before_commit = [](std::int64_t) {};
  std::vector<std::int64_t> shares;

  int run(RunningCoordinator& coordinator) {
    MemberOptions options = coordinator.member_options(rank);
    options.stop = stop_signal;
    auto client = MemberClient::join(options, test_join(rank, samples));
    if (!client.ok()) return static_cast<int>(contract::exit_code_of(client.error().code));
    return steps(**client);
  }

 private:
  int steps(MemberClient& client) {
    EXPECT_TRUE(client.send_ready({{}, "beef", 0}).ok());
    while (true) {
      auto event = client.next_event(in(20));
      if (!event.ok()) return static_cast<int>(contract::exit_code_of(event.error().code));
      if (const auto* finish = std::get_if<contract::Finish>(&*event)) return finish->completed ? 0 : 143;
      if (std::get_if<contract::Abort>(&*event) != nullptr) return 75;
      const auto& plan = std::get<contract::StepPlan>(*event);
      if (plan.step == die_at) return 137;
      if (plan.step == fail_at) {
        client.fail({65, "label 12 is outside 0..9", plan.step});
        return 65;
      }
      before_commit(plan.step);
      const contract::Commit commit = test_commit(plan, rank, 0.001);
      shares.push_back(commit.samples);
      if (!client.commit(commit).ok()) continue;  // next_event() says why
      if (plan.evaluate_after) (void)client.evaluated({plan.step, plan.epoch, 5, 9, 10, 0});
      if (plan.checkpoint_after) (void)client.checkpointed({plan.step, rank == 0 ? "step" : "", 10, 0, ""});
    }
  }
};

std::vector<int> run_all(RunningCoordinator& coordinator, std::vector<FakeWorker>& workers) {
  std::vector<std::future<int>> ends;
  for (FakeWorker& worker : workers)
    ends.push_back(std::async(std::launch::async, [&] { return worker.run(coordinator); }));
  std::vector<int> codes;
  for (auto& end : ends) codes.push_back(end.get());
  return codes;
}

std::vector<FakeWorker> workers_of(int ranks, std::int64_t samples) {
  std::vector<FakeWorker> workers(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    workers[static_cast<std::size_t>(r)].rank = r;
    workers[static_cast<std::size_t>(r)].samples = samples;
  }
  return workers;
}

TEST(CoordinatorServer, a_job_with_an_uneven_last_batch_completes) {
  RunningCoordinator coordinator(test_config(4, 4));
  auto workers = workers_of(4, 103);
  EXPECT_EQ(run_all(coordinator, workers), (std::vector<int>{0, 0, 0, 0}));
  EXPECT_EQ(coordinator.exit_code(), 0);
  const contract::JobReport report = coordinator.last_report();
  EXPECT_EQ(report.stage, contract::JobStage::kCompleted);
  EXPECT_EQ(report.progress.step, 26);
  EXPECT_EQ(report.progress.samples, 103);
  EXPECT_EQ(report.replicas[2].consumed, 25);
  EXPECT_EQ(workers[2].shares.back(), 0);
  EXPECT_EQ(workers[3].shares.back(), 1);
}

TEST(CoordinatorServer, pages_are_served_while_the_job_runs) {
  RunningCoordinator coordinator(test_config(1, 10));
  EXPECT_EQ(coordinator.report().message, "waiting for rank 0 of 1");
  auto workers = workers_of(1, 100);
  std::string page;
  workers[0].before_commit = [&](std::int64_t step) {
    if (step != 5) return;
    EXPECT_EQ(coordinator.report().stage, contract::JobStage::kRunning);
    page =
        base::http_get("127.0.0.1", coordinator.metrics_port, "/metrics", std::chrono::seconds(5), 1u << 20)
            ->body;
  };
  EXPECT_EQ(run_all(coordinator, workers), std::vector<int>{0});
  EXPECT_NE(page.find("evenkeel_job_loss{split=\"train\",trainingjob=\"demo\"} 2"), std::string::npos)
      << page;
  EXPECT_NE(page.find("evenkeel_job_nonfinite_steps_total{kind=\"loss\",trainingjob=\"demo\"} 0"),
            std::string::npos)
      << page;
  EXPECT_EQ(page.find("evenkeel_job_checkpoint_size_bytes{"),
            std::string::npos);  // none was written: absent, not 0
}

TEST(CoordinatorServer, a_worker_that_vanishes_aborts_the_others_at_once) {
  RunningCoordinator coordinator(test_config(3, 4));
  auto workers = workers_of(3, 100);
  workers[1].die_at = 3;
  const base::MonotonicTime begin = base::real_clock().now();
  EXPECT_EQ(run_all(coordinator, workers), (std::vector<int>{75, 137, 75}));
  EXPECT_LT(base::seconds(base::real_clock().now() - begin), 10);
  EXPECT_EQ(coordinator.exit_code(), 75);
  EXPECT_EQ(coordinator.last_report().failure->rank, 1);
}

TEST(CoordinatorServer, a_worker_that_says_why_it_fails_is_quoted) {
  RunningCoordinator coordinator(test_config(2, 4));
  auto workers = workers_of(2, 100);
  workers[1].fail_at = 2;
  EXPECT_EQ(run_all(coordinator, workers), (std::vector<int>{75, 65}));
  EXPECT_EQ(coordinator.exit_code(), 65);
  EXPECT_NE(coordinator.last_report().message.find("label 12"), std::string::npos);
}

TEST(CoordinatorServer, garbage_is_closed_within_a_second_and_changes_nothing) {
  RunningCoordinator coordinator(test_config(1, 10));
  const std::string texts[] = {"GET / HTTP/1.1\r\n\r\n", std::string(100000, 'A'),
                               "EKC1" + std::string(40, '\0'), ""};
  for (const std::string& text : texts) {
    auto socket = base::connect_to({"127.0.0.1", coordinator.control_port}, in(5), nullptr);
    ASSERT_TRUE(socket.ok());
    (void)socket->send_all(std::as_bytes(std::span(text.data(), text.size())), in(5), nullptr);
    std::array<std::byte, 1> byte;
    const base::MonotonicTime begin = base::real_clock().now();
    const auto answer = socket->receive_all(byte, in(5), nullptr);
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable)
        << "the connection was not closed: " << text.substr(0, 10);
    EXPECT_LT(base::seconds(base::real_clock().now() - begin), 3);
  }
  auto workers = workers_of(1, 100);
  EXPECT_EQ(run_all(coordinator, workers), std::vector<int>{0});
}

TEST(CoordinatorServer, the_wrong_key_gets_in_nowhere) {
  RunningCoordinator coordinator(test_config(1, 10));
  MemberOptions options = coordinator.member_options(0, "another key of the right length!");
  options.connect_timeout = std::chrono::milliseconds(1);
  const auto client = MemberClient::join(options, test_join(0, 100));
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(client.error().message.find("does not hold this job's key"), std::string::npos)
      << client.error().message;
  EXPECT_EQ(coordinator.report().joined, 0);
}

TEST(CoordinatorServer, another_plan_is_refused_with_78_and_the_right_worker_takes_its_place) {
  RunningCoordinator coordinator(test_config(2, 10));
  contract::Join wrong = test_join(1, 100);
  wrong.plan_hash = "bbbbbbbbbbbb";
  wrong.plan_parts[0].second = "63 units";
  auto refused = std::async(std::launch::async,
                            [&] { return MemberClient::join(coordinator.member_options(1), wrong); });
  auto workers = workers_of(2, 100);
  auto right = std::async(std::launch::async, [&] { return workers[0].run(coordinator); });
  const auto client = refused.get();
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.error().code, ErrorCode::kMismatch);
  EXPECT_NE(client.error().message.find("dense_1"), std::string::npos) << client.error().message;
  EXPECT_EQ(workers[1].run(coordinator), 0);
  EXPECT_EQ(right.get(), 0);
  EXPECT_EQ(coordinator.exit_code(), 0);
}

TEST(CoordinatorServer, sigterm_at_the_coordinator_ends_all_with_143) {
  RunningCoordinator coordinator(test_config(2, 2, 1000));
  auto workers = workers_of(2, 1000);
  workers[0].before_commit = [&](std::int64_t step) {
    if (step == 5) coordinator.stop();
  };
  EXPECT_EQ(run_all(coordinator, workers), (std::vector<int>{143, 143}));
  EXPECT_EQ(coordinator.exit_code(), 143);
}

TEST(CoordinatorServer, sigterm_at_a_worker_ends_all_with_143) {
  RunningCoordinator coordinator(test_config(2, 2, 1000));
  auto workers = workers_of(2, 1000);
  base::Waker signal;
  workers[1].stop_signal = &signal;
  workers[0].before_commit = [&](std::int64_t step) {
    if (step == 5) signal.wake();
  };
  EXPECT_EQ(run_all(coordinator, workers), (std::vector<int>{143, 143}));
  EXPECT_EQ(coordinator.exit_code(), 143);
}

TEST(CoordinatorServer, a_silent_worker_is_given_up_after_d) {
  contract::TrainerConfig config = test_config(2, 10);
  config.spec.restart.failure_detection_seconds = 1;
  RunningCoordinator coordinator(config);
  // Speaks until it is a member, then stands still: no client behind the connection any more.
  auto still = std::async(std::launch::async, [&] {
    return MemberClient::join(coordinator.member_options(1), test_join(1, 100));
  });
  MemberOptions options = coordinator.member_options(0);
  auto client = MemberClient::join(options, test_join(0, 100));
  ASSERT_TRUE(client.ok());
  auto other = still.get();
  ASSERT_TRUE(other.ok());
  // Both live without a step for longer than d, by their heartbeats.
  EXPECT_EQ((*client)->next_event(in(2.5)).error().code, ErrorCode::kDeadlineExceeded);
  (*other)->close();
  auto event = (*client)->next_event(in(10));
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(std::get<contract::Abort>(*event).culprit, 1);
  (*client)->close();
  EXPECT_EQ(coordinator.exit_code(), 75);
}

TEST(MemberClient, a_lost_coordinator_wakes_whoever_waits) {
  auto coordinator = std::make_unique<RunningCoordinator>(test_config(1, 10));
  auto client = MemberClient::join(coordinator->member_options(0), test_join(0, 100));
  ASSERT_TRUE(client.ok());
  coordinator->stop();  // no step has begun: it says Finish, and leaves when we do not close
  ASSERT_TRUE((*client)->send_ready({{}, "beef", 0}).ok());
  auto event = (*client)->next_event(in(5));
  ASSERT_TRUE(event.ok());
  EXPECT_FALSE(std::get<contract::Finish>(*event).completed);
  (*client)->close();
  EXPECT_EQ(coordinator->exit_code(), 143);
}

// What was begun to be saved before an attempt ended must still become visible, though nobody listens any more.
TEST(MemberClient, a_coordinator_that_said_why_it_ends_is_not_lost_but_silent) {
  RunningCoordinator coordinator(test_config(2, 10));
  auto joining = std::async(std::launch::async, [&] {
    return MemberClient::join(coordinator.member_options(1), test_join(1, 100));
  });
  auto client = MemberClient::join(coordinator.member_options(0), test_join(0, 100));
  ASSERT_TRUE(client.ok());
  auto other = joining.get();
  ASSERT_TRUE(other.ok());
  (*other)->fail({76, "the loss is nan", 2});
  EXPECT_EQ(coordinator.exit_code(), 76);
  for (auto* each : {&client, &other}) {
    while ((**each)->send_ready({{}, "beef", 0}).ok()) std::this_thread::yield();
    EXPECT_GE((**each)->silence_seconds(), 0);
  }
}

TEST(MemberClient, a_coordinator_that_falls_silent_is_lost) {
  RunningCoordinator coordinator(test_config(1, 10));
  MemberOptions impatient = coordinator.member_options(0);
  impatient.failure_detection = std::chrono::milliseconds(20);  // its heartbeats are further apart
  auto client = MemberClient::join(impatient, test_join(0, 100));
  ASSERT_TRUE(client.ok());
  while ((*client)->silence_seconds() >= 0) std::this_thread::yield();
  EXPECT_EQ((*client)->next_event(in(5)).error().code, ErrorCode::kUnavailable);
}

TEST(MemberClient, stop_before_the_membership_ends_the_waiting) {
  RunningCoordinator coordinator(test_config(2, 10));
  base::Waker signal;
  MemberOptions options = coordinator.member_options(0);
  options.stop = &signal;
  auto waiting =
      std::async(std::launch::async, [&] { return MemberClient::join(options, test_join(0, 100)); });
  while (coordinator.report().joined == 0) std::this_thread::yield();
  signal.wake();
  const auto client = waiting.get();
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.error().code, ErrorCode::kAborted);
}

}  // namespace
}  // namespace evenkeel::trainer
