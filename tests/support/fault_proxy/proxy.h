// A server that stands between a client and the API server and does to each request what its plan says. Made by tests
// (in process) and by main.cpp. Listens on 127.0.0.1 without TLS and takes the client certificate of the kubeconfig
// upstream. All functions are thread safe; one thread for each connection, all joined when it is destroyed, which takes
// less than a second whatever is held back.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "operator/kube/credentials.h"
#include "tests/support/fault_proxy/plan.h"

namespace evenkeel::support {

// One line of the log, written when the request is over; for a watch also when it opens.
struct ProxyEntry {
  double seconds = 0;  // since the proxy's start, when the request had come
  RequestFacts request;
  RequestCount count;
  Fault fault;
  int status = 0;         // of the API server's answer; 0: none was asked for or none came
  std::string delivered;  // "whole", "opened" (a watch), "cut": what the client got; "gone": it gave up first
};
base::Json to_json(const ProxyEntry& entry);

struct ProxyOptions {
  std::uint16_t port = 0;  // 0: any free one
  FaultPlan plan;
  std::string log_file;  // JSON lines, appended to; empty: none
};

class FaultProxy {
 public:
  static base::Result<std::unique_ptr<FaultProxy>> start(oper::AccessConfig upstream, ProxyOptions options);
  virtual ~FaultProxy() = default;
  virtual std::uint16_t port() const = 0;

  // From now on, also for requests and watches that are held or open: what a new plan no longer holds goes on.
  virtual void set_plan(FaultPlan plan) = 0;
  virtual void release() = 0;
  // The last 100,000.
  virtual std::vector<ProxyEntry> entries() const = 0;
  // Requests that came, also those that are not over.
  virtual std::uint64_t count(const std::string& verb, const std::string& kind) const = 0;
  virtual int open_connections() const = 0;
};

// A kubeconfig that leads to the proxy.
std::string proxy_kubeconfig(std::uint16_t port);

}  // namespace evenkeel::support
