// Asks the coordinators of running jobs for their report, read-only, a few at a time, each at most every
// `period`. A coordinator is the user's pod: its answer is bounded in time and size, goes through the checked
// decoder, and is dropped if it names another job or attempt. Thread safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/http.h"
#include "contract/report.h"

namespace evenkeel::oper {

struct ReportTarget {
  std::string host;  // the coordinator pod's IP
  std::uint16_t port = 0;
  std::int64_t attempt = 0;
  bool operator==(const ReportTarget&) const = default;
};

class ReportPoller {
 public:
  // GET of the report's text; base::http_get in production.
  using Fetch = std::function<base::Result<base::HttpResponse>(const ReportTarget&)>;
  // A report says something that decides (stage, ranks, failure, verdict), or numbers are due. On the
  // poller's threads.
  using OnNews = std::function<void(const std::string& job_key)>;

  ReportPoller(base::Clock& clock, Fetch fetch, OnNews on_news,
               base::Duration period = std::chrono::milliseconds(1500),
               base::Duration numbers_every = std::chrono::seconds(30));
  ~ReportPoller();  // stop()

  void start(int threads);
  void stop();

  // From now on this job is asked at `target`. The same target again changes nothing; another attempt drops
  // the report.
  void track(const std::string& job_uid, const std::string& job_key, const ReportTarget& target);
  // No longer asked; the last report stays.
  void pause(const std::string& job_uid);
  void forget(const std::string& job_uid);
  // The latest report of that attempt.
  std::optional<contract::JobReport> report(const std::string& job_uid, std::int64_t attempt) const;

  // One round over all targets that are due, on the caller's thread: what the threads do, for tests.
  int poll_due();

 private:
  struct Job {
    std::string key;
    ReportTarget target;
    bool active = false;
    bool in_flight = false;
    base::MonotonicTime due;
    base::MonotonicTime numbers_told{};
    std::optional<contract::JobReport> report;
    std::string refused;  // why the last answer was dropped: said once
  };
  std::optional<std::string> take_due();
  void poll(const std::string& job_uid);
  void accept(const std::string& job_uid, const ReportTarget& target,
              base::Result<contract::JobReport> report);
  void run();

  base::Clock& clock_;
  const Fetch fetch_;
  const OnNews on_news_;
  const base::Duration period_;
  const base::Duration numbers_every_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Job> jobs_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

// The production Fetch: deadline 2 s, at most contract::kMaxReportBytes.
base::Result<base::HttpResponse> fetch_report(const ReportTarget& target);

}  // namespace evenkeel::oper
