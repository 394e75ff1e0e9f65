// The pod's HTTP face: /metrics, /healthz, /readyz. Started before the data set is read, so that probes and
// scrapes are answered while a rank waits.
#pragma once

#include <atomic>
#include <memory>

#include "base/http.h"
#include "base/metrics.h"
#include "base/result.h"
#include "trainer/config/settings.h"
#include "trainer/loop/replica_metrics.h"

namespace evenkeel::trainer {

class WorkerServer {
 public:
  static base::Result<std::unique_ptr<WorkerServer>> start(const Settings& settings,
                                                           const ReplicaMetrics& metrics);
  // What /readyz says; no at first.
  void set_ready(bool ready) { ready_.store(ready); }
  std::uint16_t port() const { return server_->port(); }

 private:
  WorkerServer() = default;
  base::MetricsPage page_;
  std::atomic<bool> ready_{false};
  std::unique_ptr<base::HttpServer> server_;  // last: its threads use the members above
};

}  // namespace evenkeel::trainer
