// The running operator: caches, queue, workers, report polling, events, pages. `app` makes one and waits;
// tests too.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "operator/kube/client.h"
#include "operator/kube/credentials.h"
#include "operator/kube/transport.h"

namespace evenkeel::oper {

struct OperatorOptions {
  std::vector<std::string> namespaces;  // empty: all
  std::string metrics_host = "0.0.0.0";
  std::uint16_t metrics_port = 8080;  // 0: any free one
  std::string trainer_image;
  base::Json pod_defaults = base::Json::object();
  ClientOptions client;
  int workers = 4;
  std::string instance = "evenkeel-operator";  // pod name, for events
  std::string api_host;                        // for the label `host`
};

class Operator {
 public:
  // Both must outlive the operator. The clock's sleeps should end at stop (StopClock).
  Operator(Transport& transport, TokenSource& tokens, base::Clock& clock, OperatorOptions options);
  ~Operator();  // stop()

  // Starts pages first (a probe must be answered while the caches fill), then watches, then workers.
  base::Status start();
  // Stops intake, abandons what runs, cancels watches, joins. REQUIRES: the clock's sleeps end.
  void stop();

  std::uint16_t metrics_port() const;
  bool ready() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace evenkeel::oper
