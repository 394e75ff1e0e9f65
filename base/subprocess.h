// Child processes: started in a process group of their own, killed with us, waited for with a deadline.
// One thread an object at a time. The kernel kills the child when the *thread* that started it ends: start
// children from a thread that lives as long as they do.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/socket.h"

namespace evenkeel::base {

// Initialised member by member, so that a designated initialiser may leave any of them out.
struct SubprocessOptions {
  std::vector<std::string> argv{};           // argv[0] is looked for in PATH unless it holds a slash
  std::map<std::string, std::string> env{};  // over our own environment
  std::string directory{};                   // empty: ours
  // Where its output goes; empty: to ours. Files are appended to. One file for both is fine.
  std::string stdout_file{};
  std::string stderr_file{};
  bool pipe_stdout = false;  // to be read from stdout_fd()
  bool stderr_to_stdout = false;  // one stream, in the order in which it was written
};

class Subprocess {
 public:
  // A program that cannot be started is an error here, not an exit code later.
  static Result<Subprocess> start(const SubprocessOptions& options);
  Subprocess(Subprocess&& other) noexcept;
  Subprocess& operator=(Subprocess&& other) noexcept;
  // Kills the group if the child still runs, and waits for it.
  ~Subprocess();

  int pid() const { return pid_; }
  // The reading end; -1 without pipe_stdout.
  int stdout_fd() const { return stdout_.fd(); }
  // Readable once the child has ended.
  int ended_fd() const { return pidfd_.fd(); }
  // Everything until the child closes its output; at most max_bytes.
  Result<std::string> read_stdout(std::size_t max_bytes, MonotonicTime deadline);

  // 0..255, or 128 + the signal that ended it. Deadline passed: kDeadlineExceeded, and it still runs.
  Result<int> wait(MonotonicTime deadline, const Waker* waker);
  // The same without waiting; nothing while it runs.
  std::optional<int> exit_code();
  // To the whole group. Ended already: nothing is sent, the number may belong to another by now.
  void signal(int number);

 private:
  Subprocess() = default;
  void end();

  int pid_ = -1;
  Socket pidfd_;   // readable when the child has ended
  Socket stdout_;  // a pipe; only its ownership is used
  std::optional<int> exit_code_;
};

}  // namespace evenkeel::base
