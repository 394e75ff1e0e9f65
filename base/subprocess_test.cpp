#include "base/subprocess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "base/files.h"
#include "base/signals.h"

namespace evenkeel::base {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

MonotonicTime soon() {
  return real_clock().now() + std::chrono::seconds(60);
}

Subprocess shell(const std::string& script, SubprocessOptions options = {}) {
  options.argv = {"sh", "-c", script};
  auto child = Subprocess::start(options);
  EXPECT_TRUE(child.ok()) << child.error().message;
  return std::move(child).value();
}

std::string output_of(const std::string& script, SubprocessOptions options = {}) {
  options.pipe_stdout = true;
  Subprocess child = shell(script, options);
  return child.read_stdout(1 << 20, soon()).value();
}

TEST(Subprocess, gives_the_exit_code_or_128_and_the_signal) {
  EXPECT_EQ(shell("exit 0").wait(soon(), nullptr).value(), 0);
  EXPECT_EQ(shell("exit 77").wait(soon(), nullptr).value(), 77);
  EXPECT_EQ(shell("kill -KILL $$").wait(soon(), nullptr).value(), 137);
  Subprocess child = shell("exec sleep 600");
  EXPECT_FALSE(child.exit_code().has_value());
  child.signal(SIGTERM);
  EXPECT_EQ(child.wait(soon(), nullptr).value(), 143);
  EXPECT_EQ(child.exit_code(), 143);
  child.signal(SIGTERM);  // gone: nothing happens
}

TEST(Subprocess, a_program_that_cannot_start_is_an_error_with_its_name) {
  const auto missing = Subprocess::start({.argv = {"/no/such/program"}});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("/no/such/program: No such file"));
  EXPECT_EQ(Subprocess::start({.argv = {"/etc/passwd"}}).error().code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(Subprocess::start({.argv = {"sh"}, .directory = "/no/such"}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Subprocess::start({}).error().code, ErrorCode::kInvalidInput);
}

TEST(Subprocess, waiting_ends_at_the_deadline_or_by_the_waker_and_the_child_runs_on) {
  Subprocess child = shell("exec sleep 600");
  EXPECT_EQ(child.wait(real_clock().now() + milliseconds(20), nullptr).error().code,
            ErrorCode::kDeadlineExceeded);
  Waker waker;
  waker.wake();
  EXPECT_EQ(child.wait(soon(), &waker).error().code, ErrorCode::kAborted);
  EXPECT_EQ(kill(child.pid(), 0), 0);
}

TEST(Subprocess, environment_and_directory_are_changed_over_ours) {
  setenv("EVENKEEL_TEST_OURS", "a", 1);
  setenv("EVENKEEL_TEST_BOTH", "a", 1);
  SubprocessOptions options;
  options.env = {{"EVENKEEL_TEST_BOTH", "b"}};
  options.directory = "/";
  EXPECT_EQ(output_of("echo $EVENKEEL_TEST_OURS $EVENKEEL_TEST_BOTH $(pwd)", options), "a b /\n");
}

TEST(Subprocess, output_goes_to_files_appended) {
  const std::string path = testing::TempDir() + "evenkeel_child_output." + std::to_string(getpid());
  SubprocessOptions options;
  options.stdout_file = path;
  options.stderr_file = path;
  EXPECT_EQ(shell("echo one; echo two >&2", options).wait(soon(), nullptr).value(), 0);
  EXPECT_EQ(shell("echo three", options).wait(soon(), nullptr).value(), 0);
  EXPECT_EQ(real_files().read(path, 100).value(), "one\ntwo\nthree\n");
  std::remove(path.c_str());
}

TEST(Subprocess, too_much_output_is_an_error) {
  SubprocessOptions options;
  options.pipe_stdout = true;
  Subprocess child = shell("while :; do echo xxxxxxxxxxxxxxxxxxxx; done", options);
  EXPECT_EQ(child.read_stdout(1000, soon()).error().code, ErrorCode::kInvalidInput);
}

TEST(Subprocess, the_whole_group_dies_with_its_object) {
  SubprocessOptions options;
  options.pipe_stdout = true;
  auto child = std::make_unique<Subprocess>(shell("sleep 600 & echo $!; wait", options));
  std::array<char, 32> text{};
  ASSERT_GT(read(child->stdout_fd(), text.data(), text.size() - 1), 0);
  const int grandchild = std::atoi(text.data());
  ASSERT_GT(grandchild, 1);
  const int duplicate = dup(child->stdout_fd());
  child.reset();
  // The pipe ends when the last of its writers is dead, the grandchild too.
  EXPECT_EQ(read(duplicate, text.data(), text.size()), 0);
  close(duplicate);
}

TEST(Subprocess, the_child_does_not_inherit_what_we_ignore_or_hold_open) {
  const StopSignal stop;  // ignores SIGPIPE
  EXPECT_EQ(output_of("kill -PIPE $$; echo alive"), "");
  const auto listener = Listener::open({"127.0.0.1", 0});
  ASSERT_TRUE(listener.ok());
  EXPECT_EQ(output_of("test -e /proc/self/fd/" + std::to_string(listener->fd()) + " && echo open"), "");
}

TEST(StopSignal, a_signal_sets_the_flag_and_wakes_for_good) {
  const StopSignal stop;
  EXPECT_FALSE(stop.requested());
  EXPECT_FALSE(stop.wait(real_clock().now() + milliseconds(1)));
  kill(getpid(), SIGTERM);
  EXPECT_TRUE(stop.wait(MonotonicTime::max()));
  EXPECT_EQ(stop.number(), SIGTERM);
  auto listener = Listener::open({"127.0.0.1", 0});
  EXPECT_EQ(listener->accept(soon(), &stop.waker()).error().code, ErrorCode::kAborted);
  kill(getpid(), SIGTERM);  // said twice is fine
  EXPECT_TRUE(stop.requested());
}

// A signal frame on the stack of a thread that runs JIT-compiled kernels overwrites the heap.
TEST(StopSignal, no_thread_that_computes_runs_a_handler) {
  const StopSignal stop;
  std::thread later([] {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    EXPECT_TRUE(sigismember(&mask, SIGTERM));
    EXPECT_TRUE(sigismember(&mask, SIGINT));
  });
  later.join();
  EXPECT_EQ(output_of("kill -TERM $$; echo alive"), "") << "a child must not inherit the mask";
}

TEST(StopSignal, a_second_interrupt_ends_the_program) {
  EXPECT_EXIT(
      {
        const StopSignal stop;
        kill(getpid(), SIGINT);
        (void)stop.wait(MonotonicTime::max());
        kill(getpid(), SIGINT);
        while (true) pause();
      },
      testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace evenkeel::base
