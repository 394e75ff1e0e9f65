#include "trainer/launch/launcher.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "contract/exit_codes.h"
#include "contract/report.h"
#include "contract/worst_exit.h"
#include "trainer/launch/output_pump.h"
#include "trainer/launch/pod_server.h"
#include "trainer/launch/rank_environment.h"
#include "trainer/launch/restart_budget.h"

namespace evenkeel::trainer {
namespace {

using base::MonotonicTime;
using base::Result;
using base::Status;

// A rank has ended for good, and so does the pod: the others hear of it from the coordinator, and end by themselves
// or are asked to; a checkpoint may be part of that.
constexpr base::Duration kOwnEnd = std::chrono::seconds(5);
constexpr base::Duration kAskedEnd = std::chrono::seconds(60);
constexpr base::Duration kLongestSleep = std::chrono::seconds(1);
constexpr std::size_t kMaxMessageBytes = 64u << 10;

MonotonicTime now() {
  return base::real_clock().now();
}

// A process that runs, and what it says.
struct Running {
  base::Subprocess process;
  std::unique_ptr<OutputPump> output;  // reads what `process` owns: goes before it
};

struct Rank {
  RankPlace place;
  RestartBudget budget;
  std::optional<Running> running;
  std::optional<MonotonicTime> start_at;  // again
  int exit_code = 0;                      // of its last process
  contract::WorkerTermination last_words;
};

class Launcher {
 public:
  Launcher(const Settings& settings, const LauncherOptions& options) : settings_(settings), options_(options) {}
  ~Launcher() {
    ranks_.clear();
    if (!directory_.empty()) (void)base::real_files().remove_all(directory_);
  }

  Result<int> run();

 private:
  Status make_directory();
  Status start(Rank& rank);
  void look_at(Rank& rank);
  bool starts_again(Rank& rank);
  void start_what_is_due();
  void end_the_pod();
  void hand_on_the_signal();
  void signal_all(int number);
  void end_what_stays();
  void sleep();
  void reap_strangers() const;
  contract::WorkerTermination words_of(const Rank& rank) const;
  bool all_over() const;
  int judge() const;

  const Settings& settings_;
  const LauncherOptions& options_;
  std::string directory_;
  std::vector<Rank> ranks_;
  std::unique_ptr<base::HttpServer> server_;
  bool stopping_ = false;                 // asked from outside
  std::optional<MonotonicTime> ask_at_;   // the pod ends: the others are asked to
  std::optional<MonotonicTime> kill_at_;  // they have been asked
};

Result<int> Launcher::run() {
  EVENKEEL_TRY(make_directory());
  std::vector<RankPlace> places;
  for (int local = 0; local < settings_.ranks_in_pod(); ++local)
    places.push_back({settings_.rank, local, 0, directory_});
  EVENKEEL_ASSIGN(server_, start_pod_server(settings_, places));
  for (const RankPlace& place : places) {
    ranks_.emplace_back().place = place;
    EVENKEEL_TRY(start(ranks_.back()));
  }
  while (true) {
    for (Rank& rank : ranks_) look_at(rank);
    reap_strangers();
    hand_on_the_signal();
    end_what_stays();
    start_what_is_due();
    if (all_over()) return judge();
    sleep();
  }
}

// For what the ranks leave; a pod's root file system may be read-only.
Status Launcher::make_directory() {
  const char* chosen = ::getenv("TMPDIR");
  for (const char* parent : {chosen, "/tmp", "/dev/shm"}) {
    if (parent == nullptr || *parent == 0) continue;
    std::string path = std::string(parent) + "/evenkeel-launch-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) continue;
    directory_ = path;
    return {};
  }
  return base::Error{base::ErrorCode::kIo, "no folder can be made in /tmp or /dev/shm; set TMPDIR to one that can be written"};
}

Status Launcher::start(Rank& rank) {
  rank.start_at.reset();
  rank.place.restarts = rank.budget.taken();
  for (const std::string& left : {termination_file(rank.place), metrics_file(rank.place)})
    (void)base::real_files().remove_all(left);
  base::SubprocessOptions process;
  process.argv = {options_.program, "worker"};
  process.env = rank_environment(rank.place, options_.environment);
  process.pipe_stdout = process.stderr_to_stdout = true;
  EVENKEEL_ASSIGN(base::Subprocess started, base::Subprocess::start(process));
  base::log_info("rank started", {{"rank", rank.place.rank()},
                                  {"localRank", rank.place.local_rank},
                                  {"restarts", rank.place.restarts},
                                  {"pid", started.pid()}});
  auto output = std::make_unique<OutputPump>(started.stdout_fd(), stderr);
  rank.running.emplace(Running{std::move(started), std::move(output)});
  return {};
}

void Launcher::look_at(Rank& rank) {
  if (!rank.running) return;
  const std::optional<int> code = rank.running->process.exit_code();
  if (!code) return;
  rank.running->output.reset();
  rank.running.reset();
  rank.exit_code = *code;
  rank.last_words = words_of(rank);
  if (starts_again(rank)) return;
  base::log_info("rank ended", {{"rank", rank.place.rank()}, {"exitCode", *code}, {"reason", rank.last_words.reason}});
  if (*code != 0) end_the_pod();
}

bool Launcher::starts_again(Rank& rank) {
  if (stopping_ || ask_at_ || !may_start_again(settings_.config.spec.restart, rank.exit_code)) return false;
  const double seconds = base::seconds(now().time_since_epoch());
  const std::optional<double> pause = rank.budget.take(rank.exit_code, seconds);
  if (!pause) {
    rank.last_words.reason += " (started again in place " + std::to_string(rank.budget.taken()) + " times before)";
    return false;
  }
  rank.start_at = now() + base::from_seconds(*pause);
  base::log_warning("a rank is started again in its pod", {{"rank", rank.place.rank()},
                                                           {"exitCode", rank.exit_code},
                                                           {"reason", rank.last_words.reason},
                                                           {"restarts", rank.budget.taken()},
                                                           {"inSeconds", *pause}});
  return true;
}

// Its own words, or what the system tells.
contract::WorkerTermination Launcher::words_of(const Rank& rank) const {
  const auto text = base::real_files().read(termination_file(rank.place), kMaxMessageBytes);
  contract::WorkerTermination words;
  if (text.ok() && !text->empty()) words = contract::parse_worker_termination(*text);
  words.exit_code = rank.exit_code;
  if (words.reason.empty()) {
    const int signal = rank.exit_code - 128;
    const char* name = signal > 0 ? ::sigabbrev_np(signal) : nullptr;
    words.reason = name != nullptr ? std::string("ended by SIG") + name
                                   : "ended with " + std::to_string(rank.exit_code) + " and gave no reason";
  }
  return words;
}

void Launcher::start_what_is_due() {
  for (Rank& rank : ranks_) {
    if (!rank.start_at || now() < *rank.start_at) continue;
    const Status started = start(rank);
    if (started.ok()) continue;
    rank.exit_code = static_cast<int>(contract::ExitCode::kInternal);
    rank.last_words = {started.error().message, rank.exit_code, 0};
    base::log_error("a rank could not be started again", {{"rank", rank.place.rank()}, {"reason", rank.last_words.reason}});
    end_the_pod();
  }
}

// From now on nobody is started again.
void Launcher::end_the_pod() {
  if (!stopping_ && !ask_at_) ask_at_ = now() + kOwnEnd;
  for (Rank& rank : ranks_) rank.start_at.reset();
}

void Launcher::hand_on_the_signal() {
  if (stopping_ || options_.stop == nullptr || !options_.stop->requested()) return;
  stopping_ = true;
  for (Rank& rank : ranks_) rank.start_at.reset();
  base::log_info("asked to stop: so are the ranks", {{"signal", options_.stop->number()}});
  signal_all(options_.stop->number());
}

void Launcher::signal_all(int number) {
  for (Rank& rank : ranks_) {
    if (rank.running) rank.running->process.signal(number);
  }
}

void Launcher::end_what_stays() {
  if (kill_at_ && now() >= *kill_at_) {
    kill_at_ = MonotonicTime::max();
    signal_all(SIGKILL);
  } else if (ask_at_ && !kill_at_ && now() >= *ask_at_) {
    kill_at_ = now() + kAskedEnd;
    signal_all(SIGTERM);
  }
}

// Until a process ends, a signal comes, or something is due.
void Launcher::sleep() {
  std::vector<pollfd> fds;
  MonotonicTime until = now() + kLongestSleep;
  for (const Rank& rank : ranks_) {
    if (rank.running) fds.push_back({rank.running->process.ended_fd(), POLLIN, 0});
    if (rank.start_at) until = std::min(until, *rank.start_at);
  }
  if (options_.stop != nullptr && !stopping_) fds.push_back({options_.stop->waker().fd(), POLLIN, 0});
  if (ask_at_ && !kill_at_) until = std::min(until, *ask_at_);
  if (kill_at_) until = std::min(until, *kill_at_);
  const base::Duration left = std::max<base::Duration>(base::Duration::zero(), until - now());
  const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
  ::ppoll(fds.data(), fds.size(), &timeout, nullptr);
}

// As process 1 of a container it inherits whatever others leave behind there. Its own are waited for by their owners.
void Launcher::reap_strangers() const {
  while (true) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    const bool ours = std::ranges::any_of(
        ranks_, [&](const Rank& rank) { return rank.running && rank.running->process.pid() == info.si_pid; });
    if (ours || ::waitpid(info.si_pid, nullptr, WNOHANG) <= 0) return;
  }
}

bool Launcher::all_over() const {
  return std::ranges::none_of(ranks_, [](const Rank& rank) { return rank.running || rank.start_at; });
}

int Launcher::judge() const {
  std::vector<int> codes;
  for (const Rank& rank : ranks_) codes.push_back(rank.exit_code);
  const Rank& worst = ranks_[contract::worst_exit(codes)];
  contract::WorkerTermination words = worst.last_words;
  words.reason = "rank " + std::to_string(worst.place.rank()) + ": " + words.reason;
  base::log_info("all ranks of the pod have ended", {{"exitCode", worst.exit_code}, {"reason", words.reason}});
  const std::string text = contract::termination_message(words);
  const std::array<std::string_view, 1> pieces{text};
  // A machine without that file is no reason to fail: the message is for the kubelet.
  if (!settings_.termination_log.empty()) (void)base::real_files().write_synced(settings_.termination_log, pieces);
  return worst.exit_code;
}

}  // namespace

int run_launcher(const Settings& settings, const LauncherOptions& options) {
  Launcher launcher(settings, options);
  const Result<int> code = launcher.run();
  if (code.ok()) return *code;
  const int exit_code = static_cast<int>(contract::exit_code_of(code.error().code));
  base::log_error("the ranks of the pod cannot be started: " + code.error().message, {{"exitCode", exit_code}});
  return exit_code;
}

}  // namespace evenkeel::trainer
