#include "base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

extern char** environ;

namespace evenkeel::base {
namespace {

// Everything the child needs, made before fork: between fork and exec nothing may be allocated, since another
// thread may have held the allocator's lock.
struct Prepared {
  std::vector<char*> argv, env;
  std::vector<std::string> env_text;
  const char* directory = nullptr;
  int in = -1, out = -1, err = -1, report = -1;
  pid_t parent = 0;
};

[[noreturn]] void become(const Prepared& prepared) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != prepared.parent) _exit(127);  // the parent died before the line above
  // What we ignore or block would be inherited through exec.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  dup2(prepared.in, STDIN_FILENO);
  if (prepared.out >= 0) dup2(prepared.out, STDOUT_FILENO);
  if (prepared.err >= 0) dup2(prepared.err, STDERR_FILENO);
  if (prepared.directory == nullptr || chdir(prepared.directory) == 0) {
    execvpe(prepared.argv[0], prepared.argv.data(), prepared.env.data());
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(prepared.report, &error, sizeof error);
  _exit(127);
}

void set_environment(Prepared& prepared, const std::map<std::string, std::string>& changes) {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (changes.find(text.substr(0, text.find('='))) == changes.end()) prepared.env_text.push_back(text);
  }
  for (const auto& [name, value] : changes) prepared.env_text.push_back(name + "=" + value);
  for (std::string& text : prepared.env_text) prepared.env.push_back(text.data());
  prepared.env.push_back(nullptr);
}

Error system_error(const std::string& what, int error) {
  const ErrorCode code = error == ENOENT || error == ENOTDIR ? ErrorCode::kNotFound
                         : error == EACCES || error == EPERM ? ErrorCode::kPermissionDenied
                                                             : ErrorCode::kUnavailable;
  return {code, what + ": " + std::generic_category().message(error)};
}

// A missing name gives a closed one.
Result<Socket> open_output(const std::string& path) {
  if (path.empty()) return Socket();
  Socket file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file.open()) return system_error("opening " + path + " for a child's output", errno);
  return file;
}

struct Pipe {
  Socket read, write;
};
Result<Pipe> make_pipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) return system_error("making a pipe", errno);
  return Pipe{Socket(fds[0]), Socket(fds[1])};
}

int code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// True when `fd` is readable or closed at its other end.
Status wait_readable(int fd, MonotonicTime deadline, const Waker* waker) {
  std::array<pollfd, 2> polled{pollfd{fd, POLLIN, 0}, pollfd{waker != nullptr ? waker->fd() : -1, POLLIN, 0}};
  while (true) {
    const MonotonicTime now = real_clock().now();
    const Duration left =
        now >= deadline ? Duration(0) : std::min<Duration>(deadline - now, std::chrono::hours(1));
    const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    const int ready = ppoll(polled.data(), polled.size(), &timeout, nullptr);
    if (ready < 0 && errno != EINTR) return system_error("poll", errno);
    if (ready > 0 && polled[0].revents != 0) return {};
    if (ready > 0) return Error{ErrorCode::kAborted, "stopped on purpose"};
    if (now >= deadline)
      return Error{ErrorCode::kDeadlineExceeded, "it still runs at the end of the time given"};
  }
}

}  // namespace

Result<Subprocess> Subprocess::start(const SubprocessOptions& options) {
  if (options.argv.empty()) return Error{ErrorCode::kInvalidInput, "a child process without a program"};
  std::vector<std::string> argv = options.argv;
  Prepared prepared;
  for (std::string& word : argv) prepared.argv.push_back(word.data());
  prepared.argv.push_back(nullptr);
  set_environment(prepared, options.env);
  if (!options.directory.empty()) prepared.directory = options.directory.c_str();
  prepared.parent = getpid();

  const Socket null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null.open()) return system_error("opening /dev/null", errno);
  EVENKEEL_ASSIGN(Socket out, open_output(options.stdout_file));
  EVENKEEL_ASSIGN(const Socket err, open_output(options.stderr_file));
  EVENKEEL_ASSIGN(Pipe report, make_pipe());
  Subprocess child;
  if (options.pipe_stdout) {
    EVENKEEL_ASSIGN(Pipe output, make_pipe());
    child.stdout_ = std::move(output.read);
    out = std::move(output.write);
  }
  prepared.in = null.fd();
  prepared.out = out.fd();
  prepared.err = options.stderr_to_stdout ? out.fd() : err.fd();
  prepared.report = report.write.fd();

  const pid_t pid = fork();
  if (pid < 0) return system_error("starting " + options.argv[0], errno);
  if (pid == 0) become(prepared);
  child.pid_ = pid;
  report.write.close();
  int error = 0;
  ssize_t got;
  do {
    got = ::read(report.read.fd(), &error, sizeof error);  // ends when exec closes the other end
  } while (got < 0 && errno == EINTR);
  if (got == sizeof error) {
    child.end();
    return system_error("starting " + options.argv[0], error);
  }
  child.pidfd_ = Socket(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!child.pidfd_.open()) {
    const int why = errno;
    child.end();
    return system_error("watching the child " + options.argv[0] + " (pidfd_open, Linux 5.3 or newer)", why);
  }
  return child;
}

Subprocess::Subprocess(Subprocess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      stdout_(std::move(other.stdout_)),
      exit_code_(other.exit_code_) {}

Subprocess& Subprocess::operator=(Subprocess&& other) noexcept {
  if (this == &other) return *this;
  end();
  pid_ = std::exchange(other.pid_, -1);
  pidfd_ = std::move(other.pidfd_);
  stdout_ = std::move(other.stdout_);
  exit_code_ = other.exit_code_;
  return *this;
}

Subprocess::~Subprocess() {
  end();
}

void Subprocess::end() {
  if (pid_ < 0 || exit_code_) return;
  kill(-pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  exit_code_ = code_of(status);
}

std::optional<int> Subprocess::exit_code() {
  if (exit_code_ || pid_ < 0) return exit_code_;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == pid_) exit_code_ = code_of(status);
  return exit_code_;
}

Result<int> Subprocess::wait(MonotonicTime deadline, const Waker* waker) {
  while (!exit_code()) {
    Status status = wait_readable(pidfd_.fd(), deadline, waker);
    if (!status.ok())
      return with_context("waiting for child " + std::to_string(pid_), std::move(status).error());
  }
  return *exit_code_;
}

void Subprocess::signal(int number) {
  if (pid_ > 0 && !exit_code()) kill(-pid_, number);
}

Result<std::string> Subprocess::read_stdout(std::size_t max_bytes, MonotonicTime deadline) {
  const std::string context = "reading the output of child " + std::to_string(pid_);
  if (!stdout_.open()) return Error{ErrorCode::kInternal, context + ": it was started without a pipe"};
  std::string text;
  std::array<char, 4096> piece;
  while (true) {
    Status status = wait_readable(stdout_.fd(), deadline, nullptr);
    if (!status.ok()) return with_context(context, std::move(status).error());
    const ssize_t got = ::read(stdout_.fd(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(context, errno);
    if (got == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (text.size() > max_bytes) {
      return Error{ErrorCode::kInvalidInput, context + ": more than " + std::to_string(max_bytes) + " bytes"};
    }
  }
}

}  // namespace evenkeel::base
