// The operator's own metrics: those of controller-runtime by their exact names, the work queue, the API
// client, the watches. Names, help, labels and buckets come from the catalogue in contract/metrics; every
// counter is born at zero for every closed label value. Thread safe.
#pragma once

#include <prometheus/collectable.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "operator/kube/client.h"
#include "operator/kube/list_watch.h"
#include "operator/runtime/work_queue.h"

namespace evenkeel::oper {

class OperatorMetrics : public prometheus::Collectable,
                        public RequestObserver,
                        public WatchObserver,
                        public QueueObserver {
 public:
  // `host`: of the API server, as in rest_client_requests_total.
  OperatorMetrics(base::Clock& clock, std::string host, int workers);
  ~OperatorMetrics() override;

  // Read at scrape time: depth, unfinished work, sizes of caches.
  void set_gauge_reader(std::function<void(OperatorMetrics&)> reader) { reader_ = std::move(reader); }
  void set(const std::string& name, const std::map<std::string, std::string>& labels, double value);

  void reconcile_started();
  void reconcile_finished(const std::string& result,
                          double seconds);  // success | error | requeue | requeue_after
  void reconcile_panicked();
  // The counters of this namespace appear at zero.
  void namespace_seen(const std::string& name_space);
  void job_finished(const std::string& name_space, const std::string& result);
  void pod_operation(const std::string& operation, const std::string& result);

  void request_done(const Sample& sample) override;
  void request_retried(const std::string& verb, const std::string& code) override;
  void watch_event(const std::string& resource, const std::string& type) override;
  void watch_restarted(const std::string& resource, const std::string& reason) override;
  void watch_alive(const std::string& resource) override;
  void queue_added() override;
  void queue_retried() override;
  void queue_started(double waited_seconds) override;
  void queue_finished(double worked_seconds) override;

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  struct Families;
  void count(const std::string& name, const std::map<std::string, std::string>& labels, double by = 1);
  void observe(const std::string& name, const std::map<std::string, std::string>& labels, double value);

  base::Clock& clock_;
  const std::string host_;
  std::function<void(OperatorMetrics&)> reader_;
  std::unique_ptr<Families> families_;
};

}  // namespace evenkeel::oper
