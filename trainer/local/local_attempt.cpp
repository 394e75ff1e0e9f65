#include "trainer/local/local_attempt.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/clock.h"
#include "base/files.h"
#include "base/http.h"
#include "base/socket.h"
#include "contract/commands.h"
#include "contract/env.h"
#include "contract/exit_codes.h"
#include "contract/job/restart_rules.h"

namespace evenkeel::trainer {
namespace {

using base::MonotonicTime;
using base::Result;
using base::Status;

constexpr char kHost[] = "127.0.0.1";
constexpr base::Duration kPoll = std::chrono::milliseconds(500);
// After a worker has failed: the coordinator sees its connection close and tells the others. Before all have
// joined it would wait for a replacement, which only a cluster sends.
constexpr base::Duration kFailureGrace = std::chrono::seconds(5);
// After the coordinator has ended well, beyond spec.metrics.linger; after it has not, workers have nobody to
// wait for.
constexpr base::Duration kEndGrace = std::chrono::seconds(15);
constexpr base::Duration kAbortGrace = std::chrono::seconds(5);
// After SIGTERM: the steps that are planned, and a checkpoint.
constexpr base::Duration kStopGrace = std::chrono::seconds(300);

MonotonicTime now() {
  return base::real_clock().now();
}

// Free now. Another program may take it before our child does: the child says so and is started again with another.
Result<std::vector<std::uint16_t>> free_ports(std::size_t count) {
  std::vector<base::Listener> held;
  std::vector<std::uint16_t> ports;
  for (std::size_t i = 0; i < count; ++i) {
    EVENKEEL_ASSIGN(base::Listener listener, base::Listener::open({kHost, 0}));
    ports.push_back(listener.port());
    held.push_back(std::move(listener));
  }
  return ports;
}

// More replacements than this restart.maxRestarts never asks for.
constexpr std::int64_t kIncarnationsOfAnAttempt = 1 << 20;

std::string child_name(int worker) {
  return worker < 0 ? "coordinator" : "worker-" + std::to_string(worker);
}

struct Child {
  std::string name;
  int rank = -1;  // of a worker, or the first of those below a launcher. -1: the coordinator
  base::Subprocess process;
  std::optional<int> exit_code;
  std::int64_t incarnation = 1;
  std::optional<MonotonicTime> start_again_at;
  bool in_incident = false;  // has gone down in the one that is open
};

class Attempt {
 public:
  explicit Attempt(const AttemptOptions& options) : options_(options) {}

  Status start();
  AttemptEnd run();

 private:
  std::string file(const std::string& name) const { return options_.directory + "/" + name; }
  std::map<std::string, std::string> environment(int rank, std::int64_t incarnation) const;
  Result<base::Subprocess> start_process(int rank, std::int64_t incarnation);
  Status start_child(int rank);
  void renew_metrics_port(int rank);
  // A child is what would be a pod in a cluster.
  int ranks_of_each() const { return config_.spec.workers.devices_per_replica; }
  int worker_of(int rank) const { return rank < 0 ? -1 : rank / ranks_of_each(); }
  void look_at_children();
  bool may_be_replaced(const Child& child) const;
  void plan_replacement(Child& child);
  std::string last_words(const Child& child) const;
  void start_replacements();
  void set_deadline(base::Duration from_now) { deadline_ = std::min(deadline_, now() + from_now); }
  void poll_report();
  bool all_ended() const;
  Result<contract::JobReport> last_report() const;
  AttemptEnd judge();

  const AttemptOptions& options_;
  contract::TrainerConfig config_;
  std::vector<std::uint16_t> metrics_ports_;  // coordinator, then workers
  std::vector<Child> children_;
  contract::JobReport report_;
  MonotonicTime deadline_ = MonotonicTime::max();
  bool stopping_ = false;
  bool killed_ = false;
  int restarts_ = 0;
  bool incident_open_ = false;  // until all ranks have joined again
  std::string gave_up_;
};

Status Attempt::start() {
  config_ = options_.config;
  const std::size_t processes = static_cast<std::size_t>(config_.ranks / ranks_of_each()) + 1;
  EVENKEEL_ASSIGN(std::vector<std::uint16_t> ports, free_ports(processes + 1));
  config_.coordinator_host = kHost;
  config_.coordinator_port = ports.back();
  ports.pop_back();
  if (options_.metrics_port_base) {
    for (std::size_t i = 0; i < ports.size(); ++i)
      ports[i] = static_cast<std::uint16_t>(*options_.metrics_port_base + static_cast<int>(i));
  }
  metrics_ports_ = std::move(ports);
  const std::string text = base::dump_json(contract::to_json(config_), 1);
  const std::array<std::string_view, 1> pieces{text};
  EVENKEEL_TRY(base::real_files().write_synced(file("trainer.json"), pieces));
  EVENKEEL_TRY(start_child(-1));
  for (int rank = 0; rank < config_.ranks; rank += ranks_of_each()) EVENKEEL_TRY(start_child(rank));
  return {};
}

std::map<std::string, std::string> Attempt::environment(int rank, std::int64_t incarnation) const {
  using namespace contract;
  const std::string name = child_name(worker_of(rank));
  std::map<std::string, std::string> env;
  env[kEnvConfig] = file("trainer.json");
  env[kEnvKeyFile] = file("key");
  env[kEnvRole] = rank < 0 ? "coordinator" : "worker";
  env[kEnvRank] = std::to_string(std::max(rank, 0));
  env[kEnvIncarnation] = std::to_string(incarnation);
  env[kEnvPodName] = config_.job_name + "-" + name;
  env[kEnvPodUid] = config_.job_uid + "-" + name + "-" + std::to_string(incarnation);
  env[kEnvPodIp] = kHost;
  env[kEnvNodeName] = options_.node_name;
  env[kEnvTerminationLog] = file(name + ".end");
  env[kEnvMetricsPort] = std::to_string(metrics_ports_[static_cast<std::size_t>(worker_of(rank) + 1)]);
  env[kEnvDataPort] = "0";
  const bool launched = rank >= 0 && ranks_of_each() > 1;
  if (launched) env["TMPDIR"] = options_.directory;
  if (options_.trace && rank >= 0)
    env[kEnvTrace] = file(launched ? std::string("worker-") + kRankInName + ".trace" : name + ".trace");
  if (!options_.inject.empty()) env[kEnvInject] = options_.inject;
  if (options_.micro_batch > 0) env[kEnvMicroBatch] = std::to_string(options_.micro_batch);
  return env;
}

Result<base::Subprocess> Attempt::start_process(int rank, std::int64_t incarnation) {
  const std::string role = rank < 0 ? "coordinator" : ranks_of_each() > 1 ? contract::kLaunchCommand : "worker";
  const std::string name = child_name(worker_of(rank));
  base::SubprocessOptions process;
  process.argv = {options_.program, role};
  if (const auto procs = options_.cgroup_procs.find(worker_of(rank)); procs != options_.cgroup_procs.end()) {
    // Enters the cgroup, then becomes the trainer: it sees its limit from its first instruction.
    process.argv = {"/bin/sh",        "-c", "echo $$ > \"$0\" && exec \"$@\"", procs->second,
                    options_.program, role};
  }
  process.env = environment(rank, incarnation);
  process.stdout_file = file(name + ".log");
  process.stderr_file = file(name + ".log");
  (void)base::real_files().remove_all(file(name + ".end"));
  return base::Subprocess::start(process);
}

// Somebody else may have taken it while nobody listened there, and keeps it for as long as he likes.
void Attempt::renew_metrics_port(int rank) {
  if (options_.metrics_port_base) return;  // the user's choice
  std::uint16_t& port = metrics_ports_[static_cast<std::size_t>(worker_of(rank) + 1)];
  if (base::Listener::open({kHost, port}).ok()) return;
  if (const auto other = free_ports(1); other.ok()) port = other->front();
}

// Incarnations rise over attempts too: the number of the attempt leaves room for replacements.
Status Attempt::start_child(int rank) {
  const std::int64_t incarnation = std::int64_t{config_.attempt} * kIncarnationsOfAnAttempt;
  EVENKEEL_ASSIGN(base::Subprocess started, start_process(rank, incarnation));
  children_.push_back({child_name(worker_of(rank)), rank, std::move(started), std::nullopt, incarnation, std::nullopt});
  return {};
}

bool Attempt::all_ended() const {
  return std::all_of(children_.begin(), children_.end(),
                     [](const Child& child) { return child.exit_code && !child.start_again_at; });
}

void Attempt::look_at_children() {
  for (Child& child : children_) {
    if (child.exit_code) continue;
    child.exit_code = child.process.exit_code();
    if (!child.exit_code) continue;
    if (may_be_replaced(child)) {
      plan_replacement(child);
      continue;
    }
    const bool well =
        *child.exit_code == 0 || *child.exit_code == static_cast<int>(contract::ExitCode::kStopped);
    if (child.rank < 0) {
      set_deadline(well ? kEndGrace + std::chrono::seconds(config_.spec.metrics_linger_seconds)
                        : kAbortGrace);
      for (Child& other : children_) other.start_again_at.reset();
    } else if (*child.exit_code != 0 && !stopping_) {
      set_deadline(kFailureGrace);
    }
  }
}

// What ended by its own decision is not replaced: a coordinator that has ended the attempt, a worker whose
// failure ends the job by its rules.
bool Attempt::may_be_replaced(const Child& child) const {
  if (config_.spec.restart.scope != contract::RestartScope::kWorker || stopping_ || killed_) return false;
  const int code = *child.exit_code;
  const bool by_signal = code > 128 && code != static_cast<int>(contract::ExitCode::kStopped);
  if (child.rank < 0) return by_signal;
  const Child& coordinator = children_.front();
  if (code == 0 || (coordinator.exit_code && !coordinator.start_again_at)) return false;
  return contract::action_for(config_.spec.restart, code) != contract::RestartAction::kFailJob;
}

// Why a worker ended, as it says itself; empty: it could not, or it is the coordinator.
std::string Attempt::last_words(const Child& child) const {
  if (child.rank < 0) return "";
  const auto words = base::real_files().read(file(child.name + ".end"), 64u << 10);
  return words.ok() ? contract::parse_worker_termination(*words).reason : "";
}

// The first one at once, then 1 s doubling; several processes that go down together are one incident, one that
// goes down again before all have joined is the next.
void Attempt::plan_replacement(Child& child) {
  if (!incident_open_ || child.in_incident) {
    const int before = options_.restarts_before + restarts_;
    if (before >= config_.spec.restart.max_restarts) {
      gave_up_ = "restart.maxRestarts (" + std::to_string(config_.spec.restart.max_restarts) +
                 ") is reached; " + child.name + " ended with " + std::to_string(*child.exit_code) + ": " +
                 last_words(child);
      return set_deadline(base::Duration::zero());
    }
    ++restarts_;
    incident_open_ = true;
    for (Child& other : children_) other.in_incident = false;
  }
  child.in_incident = true;
  const double pause = restart_pause_seconds(restarts_ - 1);
  child.start_again_at = now() + base::from_seconds(pause);
  if (options_.on_replaced) {
    const std::string why = last_words(child);
    options_.on_replaced(child.name + " ended with " + std::to_string(*child.exit_code) +
                         (why.empty() ? "" : " (" + why + ")") + "; another one takes its place" +
                         (pause > 0 ? " in " + std::to_string(static_cast<int>(pause)) + " s" : ""));
  }
}

void Attempt::start_replacements() {
  for (Child& child : children_) {
    if (!child.start_again_at || now() < *child.start_again_at || stopping_ || killed_) continue;
    child.start_again_at.reset();
    renew_metrics_port(child.rank);
    Result<base::Subprocess> started = start_process(child.rank, ++child.incarnation);
    if (!started.ok()) {
      gave_up_ = child.name + ": " + started.error().message;
      return set_deadline(base::Duration::zero());
    }
    child.process = std::move(*started);
    child.exit_code.reset();
  }
}

void Attempt::poll_report() {
  const auto answer = base::http_get(kHost, metrics_ports_[0], contract::kReportPath, std::chrono::seconds(2),
                                     contract::kMaxReportBytes);
  if (!answer.ok() || answer->status != 200) return;  // starting, or gone
  const auto json = base::parse_json(answer->body);
  if (!json.ok()) return;
  auto report = contract::decode_report(*json);
  if (!report.ok()) return;
  report_ = std::move(*report);
  if (report_.joined == report_.ranks && report_.stage == contract::JobStage::kRunning) incident_open_ = false;
  if (options_.on_report) options_.on_report(report_);
}

AttemptEnd Attempt::run() {
  while (true) {
    look_at_children();
    start_replacements();
    if (all_ended()) break;
    if (now() >= deadline_ && !killed_) {
      killed_ = true;
      for (Child& child : children_) child.process.signal(SIGKILL);
    }
    if (options_.stop != nullptr && options_.stop->requested() && !stopping_) {
      stopping_ = true;
      for (Child& child : children_) child.start_again_at.reset();
      set_deadline(kStopGrace);
      for (Child& child : children_) child.process.signal(SIGTERM);
    }
    if (!children_.front().exit_code) poll_report();
    // Ends early when the coordinator ends, or when a person presses ^C.
    if (!children_.front().exit_code) {
      (void)children_.front().process.wait(
          now() + kPoll, options_.stop != nullptr && !stopping_ ? &options_.stop->waker() : nullptr);
    } else {
      base::real_clock().sleep_for(std::chrono::milliseconds(50));
    }
  }
  return judge();
}

Result<contract::JobReport> Attempt::last_report() const {
  EVENKEEL_ASSIGN(const std::string text,
                  base::real_files().read(file("coordinator.end"), contract::kMaxTerminationMessageBytes));
  EVENKEEL_ASSIGN(const base::Json json, base::parse_json(text));
  return contract::decode_report(json);
}

// The coordinator knows best why it ended; where it did not end by itself, the first worker that failed.
AttemptEnd Attempt::judge() {
  AttemptEnd end;
  end.restarts = restarts_;
  auto last = last_report();
  if (last.ok()) {
    // Long reports lose replicas on their way into the file.
    if (last->replicas.size() < report_.replicas.size()) last->replicas = report_.replicas;
    end.report = std::move(*last);
  } else {
    end.report = report_;
    end.report_error = last.error().message;
  }
  const int coordinator = *children_.front().exit_code;
  end.exit_code = coordinator;
  end.reason = end.report.message;
  if (end.report.failure) {
    end.culprit = end.report.failure->rank;
    end.exit_code = coordinator == 0 ? 0 : end.report.failure->exit_code;
    end.reason = end.report.failure->reason;
  }
  if (!gave_up_.empty()) {
    end.reason = gave_up_;
    end.exit_code = static_cast<int>(contract::ExitCode::kTryAgain);
    end.gave_up = true;
    return end;
  }
  if (coordinator == 0 || coordinator == static_cast<int>(contract::ExitCode::kStopped)) {
    end.exit_code = coordinator;
    return end;
  }
  if (!killed_ && end.report.failure) {
    for (const Child& child : children_) {
      if (end.culprit >= 0 && worker_of(child.rank) == worker_of(end.culprit))
        end.reason += " (" + child.name + " ended with " + std::to_string(*child.exit_code) + ")";
    }
    return end;
  }
  for (const Child& child : children_) {
    const int code = *child.exit_code;
    if (child.rank < 0 || code == 0 || code == 128 + SIGKILL) continue;
    const auto words = base::real_files().read(file(child.name + ".end"), 64u << 10);
    end.culprit = child.rank;
    end.exit_code = code;
    end.reason = child.name + ": " +
                 (words.ok() ? contract::parse_worker_termination(*words).reason : "no reason given");
    if (code != static_cast<int>(contract::ExitCode::kTryAgain)) break;
  }
  return end;
}

}  // namespace

double restart_pause_seconds(int restarts) {
  constexpr double kLongest = 300;
  return restarts <= 0 ? 0 : std::min(kLongest, std::pow(2.0, restarts - 1));
}

std::vector<std::string> trace_parts(const AttemptOptions& options) {
  std::vector<std::string> parts;
  for (int rank = 0; rank < options.config.ranks; ++rank)
    parts.push_back(options.directory + "/worker-" + std::to_string(rank) + ".trace");
  return parts;
}

Result<AttemptEnd> run_attempt(const AttemptOptions& options) {
  Attempt attempt(options);
  EVENKEEL_TRY(attempt.start());
  return attempt.run();
}

}  // namespace evenkeel::trainer
