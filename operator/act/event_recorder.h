// Kubernetes Events (events.k8s.io/v1) of TrainingJobs. `record` never blocks and never fails: a bounded
// queue, one thread, a budget for each object; what does not fit is dropped and counted. Thread safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "operator/act/job_memory.h"
#include "operator/kube/client.h"
#include "operator/kube/rate_limiter.h"
#include "operator/reconcile/reconcile.h"

namespace evenkeel::oper {

class EventRecorder {
 public:
  EventRecorder(ApiClient& client, std::string instance);
  ~EventRecorder();  // stop()

  void start();
  void stop();
  void record(const JobRef& job, const EventNote& note);
  std::uint64_t dropped() const { return dropped_; }

  // One event to the API server; called by the thread, and by tests.
  void send(const Json& event);
  // The same job, reason and text give the same name: said twice it is one event with a count.
  Json make_event(const JobRef& job, const EventNote& note) const;

 private:
  void run();
  bool within_budget(const std::string& job_uid);

  ApiClient& client_;
  const std::string instance_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Json> queue_;
  std::map<std::string, std::unique_ptr<RateLimiter>> budgets_;  // by job UID
  bool stopping_ = false;
  std::atomic<std::uint64_t> dropped_{0};
  std::thread thread_;
};

}  // namespace evenkeel::oper
