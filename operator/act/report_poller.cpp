#include "operator/act/report_poller.h"

#include "base/log.h"

namespace evenkeel::oper {
namespace {

constexpr std::chrono::milliseconds kDeadline{2000};

// Does `now` say something that a decision depends on, beyond progress numbers?
bool is_news(const contract::JobReport& before, const contract::JobReport& now) {
  return before.stage != now.stage || before.joined != now.joined || before.ranks != now.ranks ||
         before.generation != now.generation ||
         before.coordinator_incarnation != now.coordinator_incarnation ||
         before.failure.has_value() != now.failure.has_value() ||
         before.diagnosis.verdict != now.diagnosis.verdict ||
         before.balance.slowest_rank != now.balance.slowest_rank ||
         (before.checkpoint_step > 0) != (now.checkpoint_step > 0) ||
         (before.progress.step > 0) != (now.progress.step > 0);
}

base::Result<contract::JobReport> decode(const base::Result<base::HttpResponse>& answer) {
  if (!answer.ok()) return answer.error();
  if (answer->status != 200)
    return base::Error{base::ErrorCode::kUnavailable, "HTTP " + std::to_string(answer->status)};
  EVENKEEL_ASSIGN(const base::Json json,
                  base::parse_json(answer->body, {.max_bytes = contract::kMaxReportBytes, .max_depth = 16}));
  return contract::decode_report(json);
}

}  // namespace

base::Result<base::HttpResponse> fetch_report(const ReportTarget& target) {
  return base::http_get(target.host, target.port, contract::kReportPath, kDeadline,
                        contract::kMaxReportBytes);
}

ReportPoller::ReportPoller(base::Clock& clock, Fetch fetch, OnNews on_news, base::Duration period,
                           base::Duration numbers_every)
    : clock_(clock),
      fetch_(std::move(fetch)),
      on_news_(std::move(on_news)),
      period_(period),
      numbers_every_(numbers_every) {}

ReportPoller::~ReportPoller() {
  stop();
}

void ReportPoller::start(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

void ReportPoller::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void ReportPoller::track(const std::string& job_uid, const std::string& job_key, const ReportTarget& target) {
  const std::lock_guard lock(mutex_);
  Job& job = jobs_[job_uid];
  if (job.active && job.target == target) return;
  if (job.target.attempt != target.attempt) job.report.reset();
  job.key = job_key;
  job.target = target;
  job.active = true;
  job.due = clock_.now();
  changed_.notify_one();
}

void ReportPoller::pause(const std::string& job_uid) {
  const std::lock_guard lock(mutex_);
  const auto job = jobs_.find(job_uid);
  if (job != jobs_.end()) job->second.active = false;
}

void ReportPoller::forget(const std::string& job_uid) {
  const std::lock_guard lock(mutex_);
  jobs_.erase(job_uid);
}

std::optional<contract::JobReport> ReportPoller::report(const std::string& job_uid,
                                                        std::int64_t attempt) const {
  const std::lock_guard lock(mutex_);
  const auto job = jobs_.find(job_uid);
  if (job == jobs_.end() || !job->second.report || job->second.report->attempt != attempt)
    return std::nullopt;
  return job->second.report;
}

std::optional<std::string> ReportPoller::take_due() {
  const base::MonotonicTime now = clock_.now();
  for (auto& [uid, job] : jobs_) {
    if (!job.active || job.in_flight || job.due > now) continue;
    job.in_flight = true;
    job.due = now + period_;
    return uid;
  }
  return std::nullopt;
}

void ReportPoller::poll(const std::string& job_uid) {
  ReportTarget target;
  {
    const std::lock_guard lock(mutex_);
    const auto job = jobs_.find(job_uid);
    if (job == jobs_.end()) return;
    target = job->second.target;
  }
  accept(job_uid, target, decode(fetch_(target)));
}

void ReportPoller::accept(const std::string& job_uid, const ReportTarget& target,
                          base::Result<contract::JobReport> report) {
  std::string news_for;
  {
    const std::lock_guard lock(mutex_);
    const auto found = jobs_.find(job_uid);
    if (found == jobs_.end()) return;
    Job& job = found->second;
    job.in_flight = false;
    std::string refused;
    if (!report.ok())
      refused = report.error().message;
    else if (report->job_uid != job_uid)
      refused = "it is the report of another job";
    else if (report->attempt != target.attempt)
      refused = "it is the report of attempt " + std::to_string(report->attempt);
    // A coordinator that is not up yet is usual; anything else is said, but not every second.
    if (!refused.empty()) {
      if (refused != job.refused)
        base::log_debug("no report", {{"trainingjob", job.key}, {"address", target.host}, {"why", refused}});
      job.refused = refused;
      return;
    }
    job.refused.clear();
    if (!(job.target == target)) return;  // asked for the attempt before
    const base::MonotonicTime now = clock_.now();
    if (!job.report || is_news(*job.report, *report) || now - job.numbers_told >= numbers_every_) {
      news_for = job.key;
      job.numbers_told = now;
    }
    job.report = std::move(*report);
  }
  if (!news_for.empty()) on_news_(news_for);
}

int ReportPoller::poll_due() {
  int polled = 0;
  while (true) {
    std::optional<std::string> uid;
    {
      const std::lock_guard lock(mutex_);
      uid = take_due();
    }
    if (!uid) return polled;
    poll(*uid);
    ++polled;
  }
}

void ReportPoller::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const std::optional<std::string> uid = take_due();
    if (!uid) {
      changed_.wait_for(lock, std::chrono::milliseconds(100));
      continue;
    }
    lock.unlock();
    poll(*uid);
    lock.lock();
  }
}

}  // namespace evenkeel::oper
