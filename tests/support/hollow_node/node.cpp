#include "tests/support/hollow_node/node.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/log.h"
#include "base/time_text.h"
#include "contract/labels.h"
#include "operator/kube/client.h"
#include "operator/kube/list_watch.h"
#include "operator/kube/transport_cpprest.h"
#include "operator/runtime/stop_clock.h"
#include "tests/support/hollow_node/pod_queue.h"

namespace evenkeel::support {
namespace {

using base::Json;

constexpr base::Duration kTryAgain = std::chrono::milliseconds(100);
const oper::Resource kBindings{"/api/v1", "bindings", "Binding"};

base::MonotonicTime now() {
  return base::real_clock().now();
}
std::int64_t ms_since(base::MonotonicTime begin) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(now() - begin).count();
}

// No limit of our own: the server sets the pace.
oper::ClientOptions client_options() {
  oper::ClientOptions options;
  options.qps = options.burst = 1e6;
  return options;
}

class RunningNode : public HollowNode {
 public:
  RunningNode(oper::AccessConfig access, HollowOptions options)
      : script_(std::move(options.script)),
        credentials_(std::move(access), base::real_files(), base::real_clock()),
        list_watch_(client_, {oper::pods(), options.name_space, contract::kLabelJobUid}, store_),
        connections_(options.connections) {
    // Our own answers come before their events.
    store_.set_versions_comparable(true);
    store_.set_handler([this](const oper::StoreChange& change) { queue_.add(change.uid, now()); });
  }
  ~RunningNode() override {
    client_.stop();
    clock_.stop();
    list_watch_.cancel();
    queue_.stop();
    for (std::thread& one : threads_) one.join();
  }
  void begin() {
    threads_.emplace_back([this] { list_watch_.run(); });
    for (int i = 0; i < connections_; ++i) threads_.emplace_back([this] { work(); });
  }

  void set_script(HollowScript script) override {
    const std::lock_guard lock(mutex_);
    script_ = std::move(script);
    uses_.clear();
    for (auto& [uid, known] : pods_) {
      known.behaviour.reset();
      queue_.add(uid, now());
    }
  }
  HollowCounts counts() const override { return {store_.size(), patches_, removed_, failed_}; }

 private:
  struct Known {
    base::MonotonicTime seen = now();
    std::optional<base::MonotonicTime> running, deleting;
    std::string ip;
    std::optional<Behaviour> behaviour;  // nothing: to be chosen
  };

  void work() {
    while (const auto uid = queue_.take()) {
      const auto pod = store_.get(*uid);
      if (pod) {
        if (const auto again = look_at(facts_of_pod(*pod))) queue_.add(*uid, now() + *again);
      } else {
        const std::lock_guard lock(mutex_);
        pods_.erase(*uid);
      }
      queue_.done(*uid);
    }
  }

  // When to look again; nothing: when it changes.
  std::optional<base::Duration> look_at(const PodFacts& pod) {
    const Decision next = decide_next(pod);
    switch (next.step) {
      case Step::kNothing:
        return std::nullopt;
      case Step::kWait:
        return std::chrono::milliseconds(next.wait_ms);
      case Step::kBind:
        return over(client_.create(kBindings, pod.name_space,
                                   Json{{"apiVersion", "v1"},
                                        {"kind", "Binding"},
                                        {"metadata", {{"name", pod.name}, {"uid", pod.uid}}},
                                        {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", "hollow"}}}}));
      case Step::kDelete:
        return over(client_.remove(oper::pods(), pod.name_space, pod.name, {pod.uid, "", std::nullopt}));
      case Step::kRemove: {
        const oper::ApiReply reply = client_.remove(oper::pods(), pod.name_space, pod.name, {pod.uid, "", 0});
        if (reply.ok()) ++removed_;
        return over(reply);
      }
      case Step::kPatchStatus:
        return write_status(pod, next.status);
    }
    return std::nullopt;
  }

  // The UID in the body: a successor of the same name is never meant.
  std::optional<base::Duration> write_status(const PodFacts& pod, const Json& status) {
    oper::ApiReply reply = client_.merge_patch_status(oper::pods(), pod.name_space, pod.name,
                                                      Json{{"metadata", {{"uid", pod.uid}}}, {"status", status}});
    const auto again = over(reply);
    if (reply.ok()) {
      ++patches_;
      store_.put(std::move(reply.object));
    }
    return again;
  }

  // Gone, changed or replaced meanwhile: the watch will say so. Everything else is tried again.
  std::optional<base::Duration> over(const oper::ApiReply& reply) {
    if (reply.ok() || reply.code == oper::ApiCode::kNotFound) return std::nullopt;
    if (client_.stopped()) return std::nullopt;
    ++failed_;
    base::log_warning("a hollow pod could not be changed", {{"error", reply.message}});
    return kTryAgain;
  }

  Decision decide_next(const PodFacts& pod) {
    const std::lock_guard lock(mutex_);
    const auto [at, fresh] = pods_.try_emplace(pod.uid);
    Known& known = at->second;
    if (fresh) known.ip = script_.pod_ip.empty() ? pod_ip(addresses_++) : script_.pod_ip;
    if (!known.behaviour) choose(pod, known);
    if (pod.phase == "Running" && !known.running) known.running = now();
    if (pod.deleting && !known.deleting) known.deleting = now();
    const auto since = [](const std::optional<base::MonotonicTime>& begin) { return begin ? ms_since(*begin) : 0; };
    return decide(pod, *known.behaviour, script_,
                  {ms_since(known.seen), since(known.running), since(known.deleting),
                   base::to_rfc3339(base::real_clock().wall_now()), known.ip});
  }

  // REQUIRES: mutex_ is held.
  void choose(const PodFacts& pod, Known& known) {
    known.behaviour = Behaviour{};
    const bool over = pod.deleting || pod.phase == "Succeeded" || pod.phase == "Failed";
    const auto rule = over ? std::nullopt : choose_rule(script_, pod, uses_);
    if (!rule) return;
    known.behaviour = script_.rules[*rule].behaviour;
    ++uses_[{*rule, pod.job_uid}];
  }

  mutable std::mutex mutex_;
  HollowScript script_;
  RuleUses uses_;
  std::map<std::string, Known> pods_;
  std::uint64_t addresses_ = 0;
  std::atomic<std::uint64_t> patches_{0}, removed_{0}, failed_{0};

  oper::StopClock clock_;
  oper::Credentials credentials_;
  oper::CredentialTokens tokens_{credentials_};
  std::unique_ptr<oper::Transport> transport_ = oper::make_cpprest_transport(credentials_);
  oper::ApiClient client_{*transport_, tokens_, clock_, client_options()};
  oper::ObjectStore store_{oper::ObjectStore::Owner::kByLabel};
  PodQueue queue_;
  oper::ListWatch list_watch_;
  const int connections_;
  std::vector<std::thread> threads_;
};

}  // namespace

base::Result<std::unique_ptr<HollowNode>> HollowNode::start(oper::AccessConfig access, HollowOptions options) {
  if (options.connections < 1)
    return base::Error{base::ErrorCode::kInvalidInput, "a hollow node needs at least one connection"};
  auto node = std::make_unique<RunningNode>(std::move(access), std::move(options));
  node->begin();
  return std::unique_ptr<HollowNode>(std::move(node));
}

}  // namespace evenkeel::support
