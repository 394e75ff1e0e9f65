#include "trainer/local/local_run.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/time_text.h"
#include "base/trace.h"
#include "contract/exit_codes.h"
#include "contract/job/restart_rules.h"
#include "trainer/config/manifest.h"
#include "trainer/local/cpu_cgroups.h"
#include "trainer/local/folder_lock.h"
#include "trainer/local/local_attempt.h"
#include "trainer/local/local_manifest.h"
#include "trainer/local/local_status.h"
#include "trainer/local/local_table.h"
#include "trainer/local/log_warnings.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;
using base::Status;
using contract::ExitCode;

constexpr double kLineEverySeconds = 2;     // without a terminal
constexpr double kRepeatEverySeconds = 30;  // the same, where nothing has happened: it lives

double now_s() {
  return base::seconds(base::real_clock().now().time_since_epoch());
}
std::string wall_text() {
  return base::to_rfc3339(base::real_clock().wall_now());
}

// A folder of our own, removed at the end unless somebody will want to read what is in it.
class RunFolder {
 public:
  static Result<RunFolder> make() {
    const char* parent = ::getenv("TMPDIR");
    std::string path =
        std::string(parent != nullptr && *parent != 0 ? parent : "/tmp") + "/evenkeel-local-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr)
      return Error{ErrorCode::kIo,
                   "cannot make a folder " + path + "; set TMPDIR to one that can be written"};
    return RunFolder(path);
  }
  RunFolder(RunFolder&& other) noexcept : path_(std::exchange(other.path_, "")), keep_(other.keep_) {}
  RunFolder& operator=(RunFolder&&) = delete;
  ~RunFolder() {
    if (!path_.empty() && !keep_) (void)base::real_files().remove_all(path_);
  }
  const std::string& path() const { return path_; }
  void keep() { keep_ = true; }

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
  bool keep_ = false;
};

Status write_file(const std::string& path, const std::string& text) {
  const std::array<std::string_view, 1> pieces{text};
  return base::real_files().write_synced(path, pieces);
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

class LocalRun {
 public:
  LocalRun(const LocalOptions& options, const LocalEnvironment& environment)
      : options_(options), environment_(environment) {}
  Result<int> run();

 private:
  Result<int> run_attempts();
  Status take_checkpoint_folder();
  void limit_cpu();
  AttemptOptions attempt_options();
  void show_warnings();
  bool try_again(const AttemptEnd& end);
  void show(const contract::JobReport& report);
  Status write_report(const AttemptEnd& end, int exit_code);
  contract::JobReport explainable(contract::JobReport report) const;
  void merge_trace(const AttemptOptions& attempt);
  Json cpu_json() const;
  std::ostream& out() { return *environment_.out; }
  bool stop_requested() const { return environment_.stop != nullptr && environment_.stop->requested(); }

  const LocalOptions& options_;
  const LocalEnvironment& environment_;
  contract::TrainingJob job_;
  std::optional<RunFolder> folder_;
  std::optional<FolderLock> checkpoints_;
  std::unique_ptr<CpuCgroups> cgroups_;
  std::map<int, std::string> cgroup_procs_;
  std::uint32_t attempt_ = 1;
  int restarts_ = 0;
  double started_ = now_s();
  std::string started_text_ = wall_text();
  std::optional<double> first_step_s_;
  std::optional<contract::JobReport> last_seen_;  // with its history
  Redraw redraw_;
  double next_line_ = 0, next_repeat_ = 0;
  std::string last_news_;
};

// An output that cannot be written is told before the training, not after it.
Status check_output(const char* flag, const std::string& path) {
  if (path.empty()) return {};
  base::Files& files = base::real_files();
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  const bool is_folder = files.list(path).ok();
  if (files.list(folder).ok() && !is_folder) return {};
  return Error{ErrorCode::kInvalidInput, std::string(flag) + " " + path + ": " +
                                             (is_folder ? "is a folder" : "there is no folder " + folder)};
}

Result<int> LocalRun::run() {
  EVENKEEL_TRY(check_output("--report", options_.report));
  EVENKEEL_TRY(check_output("--trace", options_.trace));
  EVENKEEL_ASSIGN(Json manifest, load_manifest(options_.manifest, base::real_files()));
  EVENKEEL_ASSIGN(job_, local_job(std::move(manifest), options_));
  if (job_.meta.name_space.empty()) job_.meta.name_space = "local";
  // Stable, so that the same job with the same checkpoint folder goes on where it stood: a checkpoint belongs
  // to a UID.
  if (job_.meta.uid.empty())
    job_.meta.uid = "local-" + base::sha256_hex(job_.meta.name_space + "/" + job_.meta.name).substr(0, 16);
  EVENKEEL_TRY(take_checkpoint_folder());
  EVENKEEL_ASSIGN(RunFolder folder, RunFolder::make());
  folder_.emplace(std::move(folder));
  EVENKEEL_TRY(write_file(folder_->path() + "/key", base::random_bytes(32)));
  limit_cpu();
  return run_attempts();
}

// A job of the same name goes on where its checkpoints end: said, as somebody may have wanted a new beginning.
Status LocalRun::take_checkpoint_folder() {
  const std::string& path = job_.spec.checkpoint.path;
  if (path.empty()) return {};
  EVENKEEL_ASSIGN(FolderLock lock, FolderLock::take(path));
  checkpoints_.emplace(std::move(lock));
  const auto entries = base::real_files().list(path);
  if (!entries.ok()) return {};
  std::string newest;  // names have leading zeros: the last one is the newest
  for (const base::DirEntry& entry : *entries) {
    if (entry.name.starts_with("step-") && !entry.name.ends_with(".tmp")) newest = entry.name;
  }
  if (!newest.empty()) {
    out() << "there are checkpoints in " << path << ", the newest is " << newest
          << ": a job of the same name goes on from it; for a new beginning name another --checkpoint-dir\n"
          << std::flush;
  }
  return {};
}

Result<int> LocalRun::run_attempts() {
  while (true) {
    const AttemptOptions attempt = attempt_options();
    EVENKEEL_ASSIGN(const AttemptEnd end, run_attempt(attempt));
    if (attempt.trace) merge_trace(attempt);
    restarts_ += end.restarts;
    if (end.exit_code != 0 && end.exit_code != static_cast<int>(ExitCode::kStopped) && try_again(end))
      continue;
    if (!end.report_error.empty())
      out() << "warning: these are the last numbers seen, the coordinator left none: " << end.report_error
            << "\n";
    show_warnings();
    out() << summary_text(end.report, now_s() - started_, end.exit_code);
    if (end.exit_code != 0 && end.exit_code != static_cast<int>(ExitCode::kStopped)) {
      folder_->keep();
      out() << "failed with exit code " << end.exit_code << ": " << end.reason
            << "\nlogs: " << folder_->path() << "\n";
    }
    out() << std::flush;
    EVENKEEL_TRY(write_report(end, end.exit_code));
    return end.exit_code;
  }
}

// Workers write into files that go with the run: what they warned of is said here, once for all that said it.
void LocalRun::show_warnings() {
  constexpr std::size_t kMost = 8, kMostLogBytes = 8u << 20;
  std::map<std::string, std::string> workers_of;  // warning -> "0, 2"
  for (int worker = 0; worker < job_.spec.workers.replicas; ++worker) {
    const auto log =
        base::real_files().read(folder_->path() + "/worker-" + std::to_string(worker) + ".log", kMostLogBytes);
    if (!log.ok()) continue;
    for (const std::string& warning : warnings_of(*log, kMost)) {
      std::string& workers = workers_of[warning];
      workers += (workers.empty() ? "" : ", ") + std::to_string(worker);
    }
  }
  std::size_t shown = 0;
  for (const auto& [warning, workers] : workers_of) {
    if (++shown > kMost) break;
    out() << "warning of worker " << workers << ": " << warning << "\n";
  }
}

// The result matters more than its picture.
void LocalRun::merge_trace(const AttemptOptions& attempt) {
  const Status merged = base::merge_traces(base::real_files(), trace_parts(attempt), options_.trace);
  if (!merged.ok()) out() << "warning: --trace: " << merged.error().message << "\n";
}

// One warning where it cannot be done; the job runs all the same, only without the unequal machines.
void LocalRun::limit_cpu() {
  for (int worker = 0; worker < job_.spec.workers.replicas; ++worker) {
    const double cores = cpu_limit_of(job_.spec, worker);
    if (cores <= 0) continue;
    Status status;
    if (!cgroups_) {
      auto made = CpuCgroups::make(environment_.cgroup_root);
      if (made.ok()) {
        cgroups_ = std::move(*made);
      } else {
        status = made.error();
      }
    }
    if (status.ok()) {
      auto procs = cgroups_->limit(worker, cores);
      if (procs.ok()) {
        cgroup_procs_[worker] = *procs;
        continue;
      }
      status = procs.error();
    }
    out() << "warning: CPU limits are not applied: " << status.error().message
          << " (needs root and a writable cgroup)\n";
    cgroup_procs_.clear();
    return;
  }
}

AttemptOptions LocalRun::attempt_options() {
  AttemptOptions options;
  options.program = environment_.program;
  options.directory = folder_->path();
  options.node_name = host_name();
  options.config.job_name = job_.meta.name;
  options.config.job_namespace = job_.meta.name_space;
  options.config.job_uid = job_.meta.uid;
  options.config.attempt = attempt_;
  options.config.coordinator_incarnation = attempt_;
  options.config.ranks = job_.spec.ranks();
  options.config.spec_json = job_.spec_json;
  options.config.spec = job_.spec;
  options.metrics_port_base = options_.metrics_port_base;
  options.cgroup_procs = cgroup_procs_;
  options.trace = !options_.trace.empty();
  options.inject = options_.inject;
  options.micro_batch = options_.micro_batch.value_or(0);
  options.stop = environment_.stop;
  options.restarts_before = restarts_;
  options.on_replaced = [this](const std::string& text) {
    out() << text << "\n" << std::flush;
    redraw_ = Redraw();
  };
  options.on_report = [this](const contract::JobReport& report) { show(report); };
  return options;
}

// The operator's rules: first replacement at once, then 1 s doubling; codes that cannot get better fail the
// job.
bool LocalRun::try_again(const AttemptEnd& end) {
  const contract::RestartAction action = contract::action_for(job_.spec.restart, end.exit_code);
  if (stop_requested() || end.gave_up || action == contract::RestartAction::kFailJob) return false;
  if (action == contract::RestartAction::kRestart && restarts_ >= job_.spec.restart.max_restarts) {
    out() << "restart.maxRestarts (" << job_.spec.restart.max_restarts << ") is reached\n";
    return false;
  }
  out() << "attempt " << attempt_ << " ended with exit code " << end.exit_code << " (" << end.reason
        << "); the job starts again\n"
        << std::flush;
  redraw_ = Redraw();
  const double pause = restart_pause_seconds(restarts_);
  ++restarts_;
  ++attempt_;
  if (environment_.stop != nullptr)
    return !environment_.stop->wait(base::real_clock().now() + base::from_seconds(pause));
  base::real_clock().sleep_for(base::from_seconds(pause));
  return true;
}

void LocalRun::show(const contract::JobReport& report) {
  const double elapsed = now_s() - started_;
  if (!report.history.empty()) last_seen_ = report;
  if (!first_step_s_ && report.progress.step > 0) first_step_s_ = elapsed;
  if (environment_.terminal) {
    out() << redraw_.frame(table_text(report, elapsed)) << std::flush;
    return;
  }
  const std::string news =
      contract::stage_name(report.stage) + report.message + std::to_string(report.progress.step);
  if (elapsed < next_line_ || (news == last_news_ && elapsed < next_repeat_)) return;
  next_line_ = elapsed + kLineEverySeconds;
  next_repeat_ = elapsed + kRepeatEverySeconds;
  last_news_ = news;
  out() << line_text(report, elapsed) << "\n" << std::flush;
}

// The coordinator's last words are short: what they leave out was seen while it still answered.
contract::JobReport LocalRun::explainable(contract::JobReport report) const {
  if (!last_seen_ || last_seen_->attempt != report.attempt) return report;
  if (report.history.empty()) report.history = last_seen_->history;
  if (!report.waterfall) report.waterfall = last_seen_->waterfall;
  if (report.replicas.size() < last_seen_->replicas.size()) report.replicas = last_seen_->replicas;
  return report;
}

Json LocalRun::cpu_json() const {
  Json list = Json::array();
  for (int rank = 0; rank < job_.spec.ranks(); ++rank) {
    Json entry{{"rank", rank}, {"limitCores", nullptr}};
    const int worker = rank / job_.spec.workers.devices_per_replica;  // its ranks share what it may use
    const auto use = cgroups_ ? cgroups_->read(worker) : std::nullopt;
    if (use && cgroup_procs_.count(worker) > 0) {
      entry["limitCores"] = use->limit_cores;
      entry["periods"] = use->periods;
      entry["throttledPeriods"] = use->throttled_periods;
      entry["throttledSeconds"] = use->throttled_seconds;
      entry["source"] = use->source;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

Status LocalRun::write_report(const AttemptEnd& end, int exit_code) {
  if (options_.report.empty()) return {};
  LocalOutcome outcome;
  outcome.phase = exit_code == 0                                      ? "Succeeded"
                  : exit_code == static_cast<int>(ExitCode::kStopped) ? "Suspended"
                                                                      : "Failed";
  outcome.restarts = restarts_;
  outcome.start_time = started_text_;
  outcome.completion_time = wall_text();
  Json report;
  report["suite"] = "local";
  report["date"] = outcome.completion_time;
  report["machine"] = {{"name", host_name()}, {"cores", std::thread::hardware_concurrency()}};
  report["versions"] = {{"evenkeel", EVENKEEL_VERSION}};
  report["timings"] = {{"total", now_s() - started_}};
  if (first_step_s_) report["timings"]["firstStep"] = *first_step_s_;
  report["exitCode"] = exit_code;
  report["job"] = job_object(job_, end.report, outcome);
  report["cpu"] = cpu_json();
  report["sentence"] = end.report.diagnosis.message;
  report["explain"] = contract::to_json(explainable(end.report));
  Status written = write_file(options_.report, base::dump_json(report, 2) + "\n");
  if (!written.ok()) return base::with_context("--report", written.error());
  return {};
}

}  // namespace

int run_local(const LocalOptions& options, const LocalEnvironment& environment) {
  LocalRun run(options, environment);
  const Result<int> code = run.run();
  if (code.ok()) return *code;
  *environment.out << "evenkeel-trainer local: " << code.error().message << std::endl;
  return static_cast<int>(contract::exit_code_of(code.error().code));
}

}  // namespace evenkeel::trainer
