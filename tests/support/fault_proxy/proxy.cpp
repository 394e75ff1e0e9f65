#include "tests/support/fault_proxy/proxy.h"

#include <atomic>
#include <list>
#include <thread>

#include "tests/support/fault_proxy/connection.h"

namespace evenkeel::support {
namespace {

class RunningProxy : public FaultProxy {
 public:
  RunningProxy(std::unique_ptr<UpstreamTarget> target, base::Listener listener, ProxyOptions options)
      : target_(std::move(target)), listener_(std::move(listener)), traffic_(std::move(options.plan), options.log_file) {}
  ~RunningProxy() override {
    stop_.wake();
    if (acceptor_.joinable()) acceptor_.join();
    for (Thread& one : threads_) one.thread.join();
  }
  void begin() {
    acceptor_ = std::thread([this] { accept_all(); });
  }

  std::uint16_t port() const override { return listener_.port(); }
  void set_plan(FaultPlan plan) override { traffic_.set_plan(std::move(plan)); }
  void release() override { traffic_.release(); }
  std::vector<ProxyEntry> entries() const override { return traffic_.entries(); }
  std::uint64_t count(const std::string& verb, const std::string& kind) const override {
    return traffic_.count(verb, kind);
  }
  int open_connections() const override { return open_; }

 private:
  struct Thread {
    std::thread thread;
    std::atomic<bool> over{false};
  };
  void accept_all() {
    while (true) {
      auto client = listener_.accept(base::real_clock().now() + std::chrono::hours(1), &stop_);
      if (!client.ok() && client.error().code != base::ErrorCode::kDeadlineExceeded) return;
      threads_.remove_if([](Thread& one) {
        if (!one.over) return false;
        one.thread.join();
        return true;
      });
      if (client.ok()) serve(std::move(*client));
    }
  }
  void serve(base::Socket client) {
    Thread& one = threads_.emplace_back();
    ++open_;
    one.thread = std::thread([this, &one, socket = std::move(client)]() mutable {
      // Its own scope: whoever sees fewer connections finds them closed.
      { Connection(std::move(socket), *target_, traffic_, stop_).run(); }
      --open_;
      one.over = true;
    });
  }

  std::unique_ptr<UpstreamTarget> target_;
  base::Listener listener_;
  Traffic traffic_;
  base::Waker stop_;
  std::atomic<int> open_{0};
  std::list<Thread> threads_;  // of the acceptor alone until it has ended
  std::thread acceptor_;
};

}  // namespace

base::Result<std::unique_ptr<FaultProxy>> FaultProxy::start(oper::AccessConfig upstream, ProxyOptions options) {
  EVENKEEL_ASSIGN(auto target, UpstreamTarget::make(std::move(upstream)));
  EVENKEEL_ASSIGN(auto listener, base::Listener::open({"127.0.0.1", options.port}));
  auto proxy = std::make_unique<RunningProxy>(std::move(target), std::move(listener), std::move(options));
  proxy->begin();
  return std::unique_ptr<FaultProxy>(std::move(proxy));
}

std::string proxy_kubeconfig(std::uint16_t port) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: proxy\n"
         "clusters:\n- name: proxy\n  cluster:\n    server: http://127.0.0.1:" +
         std::to_string(port) +
         "\ncontexts:\n- name: proxy\n  context:\n    cluster: proxy\n";
}

}  // namespace evenkeel::support
